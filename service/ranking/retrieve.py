"""The causes nearest to a query: lexical and dense lists fused, facets as a bonus. Deterministic.

Four lists: the best chunk of a page by words and by meaning, the whole page by words (a user's story is spread over
its symptoms, cause and fix), and the whole page by the words of the paste. Naive rank fusion is a trap: a list that
knows nothing still ranks everything. So an entry without a score has no vote, equal scores share a rank, and the dense
list weighs as much as the embedder knows of the question's tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from trainmedic.kb.engine.mechanism import page_of
from trainmedic.kb.model.case import Case
from trainmedic.kb.store.embedder import Embedder
from trainmedic.kb.store.index import Index
from trainmedic.service.dialogue.query import Facets, Query

Numbers: TypeAlias = npt.NDArray[np.int32] | npt.NDArray[np.int64]
Scores: TypeAlias = npt.NDArray[np.float32]
Ranks: TypeAlias = Mapping[str, tuple[int, int, float]]
"""Case → (rank among cases, its best chunk, that chunk's score), best first."""
CHUNK_WEIGHT = 0.5
"""The lists of single chunks against the list of whole pages."""
DEPTH = 80
"""Chunks of each list that take part."""
DEPTH_AROUND = 400
"""The same where causes are left out: what is left of it."""
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

    ``words`` (its best chunk), ``page`` (its whole page) and ``pasted`` (its page for the words of the paste) are its
    scores in these lists, each relative to the best of the list; 0 where not found so. ``fused`` is the reciprocal rank
    fusion of the question's three lists, from 0 to 1.
    """

    case_id: str
    score: float
    why: tuple[str, ...]
    dense_rank: int | None = None
    lexical_rank: int | None = None
    fired: bool = False
    words: float = 0.0
    page: float = 0.0
    pasted: float = 0.0
    fused: float = 0.0


def retrieve(
    query: Query,
    index: Index,
    embedder: Embedder,
    *,
    top_k: int = 10,
    filters: Mapping[str, str] | None = None,
    cases: Mapping[str, Case] | None = None,
    leave_out: Collection[str] = (),
    explain: bool = False,
) -> tuple[Hit, ...]:
    """The best ``top_k`` cases but those to ``leave_out``, best first, ties by id. ``explain`` names the words that
    found each.

    ``cases`` (id → case) gives the facets to agree with and what ``filters`` (framework, family, kind, level) look at.
    """
    allowed = _allowed(filters, cases or {}) if filters else lambda case_id: case_id not in leave_out
    # Filters look at whole cases: with one, every chunk is ranked, so that none is cut off before it is looked at.
    depth = len(index.chunks) if filters else DEPTH_AROUND if leave_out else DEPTH
    lists = _lists(query, index, embedder, depth, allowed)
    fused = lists.fused()
    scores = dict(fused)
    for case_id, (rank, _, _) in lists.pasted.items():
        scores[case_id] = scores.get(case_id, 0.0) + PASTED_WEIGHT * _vote(rank)
    for case_id in lists.fired:
        scores[case_id] = scores.get(case_id, 0.0) + FIRED_WEIGHT * _vote(1)
    agreed = {case_id: _agreement(query.facets, cases.get(case_id)) for case_id in scores} if cases else {}
    for case_id, facets in agreed.items():
        scores[case_id] += FACET_WEIGHT * _vote(1) * len(facets) / FACETS
    best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:top_k]
    chunks = [lists.words[case_id][1] for case_id, _ in best if case_id in lists.words]
    words = index.lexical.explain(query.terms, chunks) if explain else {}
    return tuple(
        Hit(
            case_id=case_id,
            score=score,
            why=tuple(lists.why(case_id, index, words, agreed.get(case_id, ()))),
            dense_rank=_rank(lists.meaning, case_id),
            lexical_rank=_rank(lists.words, case_id),
            fired=case_id in lists.fired,
            words=_relative(lists.words, case_id),
            page=_relative(lists.page, page_of(case_id)),
            pasted=_relative(lists.pasted, page_of(case_id)),
            fused=fused.get(case_id, 0.0),
        )
        for case_id, score in best
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Nearest:
    """The chunks nearest to a query by meaning, their cosines, and what this list weighs: the share of the query that
    the embedder can read."""

    chunks: Numbers
    cosines: Scores
    known: float


_NOTHING_NEAR = _Nearest(chunks=np.zeros(0, np.int64), cosines=np.zeros(0, np.float32), known=0.0)


def _nearest(text: str, index: Index, embedder: Embedder, depth: int) -> _Nearest:
    """The ``depth`` chunks nearest to a text; none if the index has no vectors or the embedder knows too little."""
    if not index.vectors.size:
        return _NOTHING_NEAR
    known = embedder.known_share(text) if text.strip() else 0.0
    if known < KNOWN_ENOUGH:
        return _NOTHING_NEAR
    vector = np.asarray(embedder.embed_query(text), np.float32)
    chunks, cosines = index.vectors.ranked(vector, depth)
    return _Nearest(chunks=chunks, cosines=cosines, known=known)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lists:
    """What found each cause. ``known`` is what the list by meaning weighs."""

    words: Ranks
    meaning: Ranks
    page: Ranks
    pasted: Ranks
    fired: Collection[str]
    known: float

    def fused(self) -> dict[str, float]:
        """Reciprocal rank fusion of the question's three lists, from 0 to 1."""
        weighted = ((self.words, CHUNK_WEIGHT), (self.meaning, CHUNK_WEIGHT * self.known))
        whole = 1.0 + sum(weight for _, weight in weighted)
        votes: dict[str, float] = {case_id: _vote(rank) / whole for case_id, (rank, _, _) in self.page.items()}
        for ranks, weight in weighted:
            for case_id, (rank, _, _) in ranks.items():
                if case_id not in votes:  # an origin counts for its page, which it shares
                    page = self.page.get(page_of(case_id))
                    votes[case_id] = _vote(page[0]) / whole if page else 0.0
                votes[case_id] += weight * _vote(rank) / whole
        return votes

    def why(
        self, case_id: str, index: Index, words: Mapping[int, tuple[str, ...]], agreed: tuple[str, ...]
    ) -> Iterator[str]:
        if case_id in self.words:
            named = ", ".join(words.get(self.words[case_id][1], ()))
            yield f"words: {named}" if named else "words"
        if case_id in self.meaning:
            yield f"meaning: {index.passages.parts[self.meaning[case_id][1]]}"
        if case_id in self.pasted:
            yield "words of the paste"
        if case_id in self.fired:
            yield "a rule fired"
        if agreed:
            yield f"facts: {', '.join(agreed)}"


def _lists(query: Query, index: Index, embedder: Embedder, depth: int, allowed: Callable[[str], bool]) -> _Lists:
    near = _nearest(query.embedded, index, embedder, depth)

    def of_chunk(number: int) -> Sequence[str]:
        return index.passages.causes[number]

    def of_page(number: int) -> Sequence[str]:
        return (index.passages.page_ids[number],)

    words = _ranks(*index.lexical.search(query.terms, depth), of_chunk, allowed)
    page = _ranks(*index.pages.search(query.terms, depth), of_page, allowed)
    pasted = _ranks(*index.pages.search(query.pasted, depth), of_page, allowed)
    return _Lists(
        words=words,
        meaning=_ranks(near.chunks, near.cosines, of_chunk, allowed),
        page=page,
        pasted=pasted,
        fired={case_id for case_id in query.fired if allowed(case_id)},
        known=near.known,
    )


def _relative(ranks: Ranks, case_id: str) -> float:
    """A cause's score in a list, relative to the best."""
    if case_id not in ranks:
        return 0.0
    best = next(iter(ranks.values()))
    return ranks[case_id][2] / best[2]


def _rank(ranks: Ranks, case_id: str) -> int | None:
    return ranks[case_id][0] if case_id in ranks else None


def _vote(rank: int) -> float:
    return SMOOTHING / (SMOOTHING + rank)


def _ranks(
    numbers: Numbers, scores: Scores, cases_of: Callable[[int], Sequence[str]], allowed: Callable[[str], bool]
) -> Ranks:
    """The cases of chunks or pages, which come best first; equals share a rank, zero is not a vote."""
    ranks: dict[str, tuple[int, int, float]] = {}
    previous, rank = None, 0
    for number, score in zip(numbers.tolist(), scores.round(5).tolist(), strict=True):
        if score <= 0:
            break
        for case_id in cases_of(number):
            if case_id in ranks or not allowed(case_id):
                continue
            if score != previous:
                previous, rank = score, len(ranks) + 1
            ranks[case_id] = (rank, number, score)
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
    if not facets.signals.isdisjoint(case.signals):
        agreed.append("signal")
    return tuple(agreed)


def _allowed(filters: Mapping[str, str], cases: Mapping[str, Case]) -> Callable[[str], bool]:
    def allowed(case_id: str) -> bool:
        case = cases.get(case_id)
        return (
            case is not None
            and filters.get("framework", "") in ("", *case.frameworks)
            and filters.get("family", case.family) == case.family
            and filters.get("kind", case.kind) == case.kind
            and filters.get("level", case.level) == case.level
        )

    return allowed
