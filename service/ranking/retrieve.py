"""The cases nearest to a query: dense and lexical ranks fused, facets as a bonus, grouped by case. Deterministic.

Naive rank fusion is a trap: a list that knows nothing still ranks everything. So a chunk without a score has no vote,
equal scores share a rank, and the dense list weighs as much as the embedder knows of the question's tokens.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from trainmedic.kb.model.case import Case
from trainmedic.kb.store.embedder import Embedder
from trainmedic.kb.store.index import Index
from trainmedic.service.question.query import Facets, Query

Numbers: TypeAlias = npt.NDArray[np.int32] | npt.NDArray[np.int64]
Scores: TypeAlias = npt.NDArray[np.float32]
Ranks: TypeAlias = Mapping[str, tuple[int, int, float]]
"""Case → (rank among cases, its best chunk, that chunk's score)."""
DEPTH = 80
"""Chunks of each list that take part."""
SMOOTHING = 30.0
"""The constant of reciprocal rank fusion, smaller than the usual 60: the lists are short and their heads are good."""
FACET_WEIGHT = 0.125
"""All facets agreeing against a first rank in one list."""
FACETS = 4
FIRED_WEIGHT = 0.5
"""A fired rule names its case: worth a first rank."""
PASTED_WEIGHT = 0.25
"""The list of the paste's words against the list of the question's: it finds what the user did not describe."""
KNOWN_ENOUGH = 0.3
"""Share of known tokens below which the dense list has no vote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One case. ``why`` says what found it, in words; the ranks are those of its best chunk (None: not found so).

    ``words`` is the share of the query's words that this chunk answers, ``meaning`` its cosine; 0 where not found so.
    ``fused`` is the reciprocal rank fusion of the question's two lists alone, ``pasted`` the vote of the paste's list,
    both from 0 to 1.
    """

    case_id: str
    score: float
    why: tuple[str, ...]
    dense_rank: int | None = None
    lexical_rank: int | None = None
    pasted_rank: int | None = None
    fired: bool = False
    words: float = 0.0
    meaning: float = 0.0
    fused: float = 0.0
    pasted: float = 0.0


def retrieve(
    query: Query,
    index: Index,
    embedder: Embedder,
    *,
    top_k: int = 10,
    filters: Mapping[str, str] | None = None,
    cases: Mapping[str, Case] | None = None,
    explain: bool = False,
) -> tuple[Hit, ...]:
    """The best ``top_k`` cases, best first, ties by id. ``explain`` names the words that found each.

    ``cases`` (id → case) gives the facets to agree with and what ``filters`` (framework, family, kind, level) look at.
    """
    # Filters look at whole cases: with one, every chunk is ranked, so that none is cut off before it is looked at.
    allowed = _allowed(filters, cases) if filters else None
    depth = len(index.chunks) if filters else DEPTH
    lexical = _by_case(*index.lexical.search(query.terms, depth), index, allowed)
    numbers, cosines, weight = _dense(query, index, embedder, depth)
    dense = _by_case(numbers, cosines, index, allowed)
    pasted = _by_case(*index.lexical.search(query.pasted, depth), index, allowed)
    fired = {case_id for case_id in query.fired if allowed is None or allowed(case_id)}
    fused = _fused(lexical, dense, weight)
    scores = dict(fused)
    for case_id, (rank, _, _) in pasted.items():
        scores[case_id] = scores.get(case_id, 0.0) + PASTED_WEIGHT * _vote(rank)
    for case_id in fired:
        scores[case_id] = scores.get(case_id, 0.0) + FIRED_WEIGHT * _vote(1)
    agreed = {case_id: _agreement(query.facets, cases.get(case_id)) for case_id in scores} if cases else {}
    for case_id, facets in agreed.items():
        scores[case_id] += FACET_WEIGHT * _vote(1) * len(facets) / FACETS
    best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:top_k]
    chunks = [lexical[case_id][1] for case_id, _ in best if case_id in lexical]
    words = index.lexical.explain(query.terms, chunks) if explain else {}
    ceiling = index.lexical.ceiling(query.terms)

    found = _Found(lexical=lexical, dense=dense, pasted=pasted, fired=fired, agreed=agreed, words=words)
    return tuple(
        Hit(
            case_id=case_id,
            score=score,
            why=tuple(found.why(case_id, index)),
            dense_rank=_rank(dense, case_id),
            lexical_rank=_rank(lexical, case_id),
            pasted_rank=_rank(pasted, case_id),
            fused=fused.get(case_id, 0.0),
            pasted=_vote(pasted[case_id][0]) if case_id in pasted else 0.0,
            fired=case_id in fired,
            words=min(1.0, lexical[case_id][2] / ceiling) if case_id in lexical and ceiling > 0 else 0.0,
            meaning=dense[case_id][2] if case_id in dense else 0.0,
        )
        for case_id, score in best
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What found each case, for its explanation."""

    lexical: Ranks
    dense: Ranks
    pasted: Ranks
    fired: Collection[str]
    agreed: Mapping[str, tuple[str, ...]]
    words: Mapping[int, tuple[str, ...]]

    def why(self, case_id: str, index: Index) -> Iterator[str]:
        if case_id in self.lexical:
            named = ", ".join(self.words.get(self.lexical[case_id][1], ()))
            yield f"words: {named}" if named else "words"
        if case_id in self.dense:
            yield f"meaning: {index.chunks[self.dense[case_id][1]].part}"
        if case_id in self.pasted:
            yield "words of the paste"
        if case_id in self.fired:
            yield "a rule fired"
        if self.agreed.get(case_id):
            yield f"facts: {', '.join(self.agreed[case_id])}"


def _fused(lexical: Ranks, dense: Ranks, weight: float) -> dict[str, float]:
    """Reciprocal rank fusion of the question's two lists, from 0 to 1; ``weight`` is that of the dense list."""
    votes: dict[str, float] = defaultdict(float)
    for ranks, share in ((lexical, 1.0), (dense, weight)):
        for case_id, (rank, _, _) in ranks.items():
            votes[case_id] += share * _vote(rank) / (1.0 + weight)
    return votes


def _rank(ranks: Ranks, case_id: str) -> int | None:
    return ranks[case_id][0] if case_id in ranks else None


def _vote(rank: int) -> float:
    return SMOOTHING / (SMOOTHING + rank)


def _dense(query: Query, index: Index, embedder: Embedder, depth: int) -> tuple[Numbers, Scores, float]:
    """Chunks, cosines, and what the list weighs: the share of the query that the embedder can read."""
    known = embedder.known_share(query.embedded) if query.embedded.strip() else 0.0
    if known < KNOWN_ENOUGH:
        return np.zeros(0, np.int64), np.zeros(0, np.float32), 0.0
    vector = np.asarray(embedder.embed_query(query.embedded), np.float32)
    return *index.vectors.ranked(vector, depth), known


def _by_case(numbers: Numbers, scores: Scores, index: Index, allowed: Callable[[str], bool] | None) -> Ranks:
    """Chunks come best first; equals share a rank, zero is no vote."""
    ranks: dict[str, tuple[int, int, float]] = {}
    previous, rank, chunks = None, 0, index.chunks
    for chunk, shown in zip(numbers.tolist(), scores.round(5).tolist(), strict=True):
        if shown <= 0:
            break
        for case_id in chunks[chunk].cases:
            if case_id in ranks or (allowed is not None and not allowed(case_id)):
                continue
            if shown != previous:
                previous, rank = shown, len(ranks) + 1
            ranks[case_id] = (rank, chunk, shown)
    return ranks


def _agreement(facets: Facets, case: Case | None) -> tuple[str, ...]:
    if case is None:
        return ()
    agreed = []
    if facets.framework in case.frameworks:
        agreed.append("framework")
    if facets.algorithm in case.algorithms:
        agreed.append("algorithm")
    if facets.model_family in case.model_families:
        agreed.append("model family")
    if facets.signals & set(case.signals):
        agreed.append("signal")
    return tuple(agreed)


def _allowed(filters: Mapping[str, str] | None, cases: Mapping[str, Case] | None) -> Callable[[str], bool]:
    wanted = dict(filters or {})

    def allowed(case_id: str) -> bool:
        if not wanted:
            return True
        case = (cases or {}).get(case_id)
        if case is None:
            return False
        return (
            wanted.get("framework", "") in ("", *case.frameworks)
            and wanted.get("family", case.family) == case.family
            and wanted.get("kind", case.kind) == case.kind
            and wanted.get("level", case.level) == case.level
        )

    return allowed
