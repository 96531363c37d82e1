"""The cases nearest to a query: dense and lexical ranks fused, facets as a bonus, grouped by case. Deterministic.

Naive rank fusion is a trap: a list that knows nothing still ranks everything. So a chunk without a score has no vote,
equal scores share a rank, and the dense list weighs as much as the embedder knows of the question's tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from kb.model.case import Case
from kb.store.embedder import Embedder
from kb.store.index import Index
from service.query import Facets, Query

DEPTH = 60
"""Chunks of each list that take part."""
SMOOTHING = 30.0
"""The constant of reciprocal rank fusion, smaller than the usual 60: the lists are short and their heads are good."""
FACET_WEIGHT = 0.25
"""All facets agreeing against a first rank in one list."""
FIRED_WEIGHT = 1.0
"""A fired rule names its case: worth a first rank."""
KNOWN_ENOUGH = 0.3
"""Share of known tokens below which the dense list has no vote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One case. ``why`` says what found it, in words; the ranks are those of its best chunk (None: not found so)."""

    case_id: str
    score: float
    why: tuple[str, ...]
    dense_rank: int | None = None
    lexical_rank: int | None = None
    fired: bool = False


def retrieve(
    query: Query,
    index: Index,
    embedder: Embedder,
    *,
    top_k: int = 10,
    filters: Mapping[str, str] | None = None,
    cases: Mapping[str, Case] | None = None,
) -> tuple[Hit, ...]:
    """The best ``top_k`` cases, best first, ties by id.

    ``cases`` (id → case) gives the facets to agree with and what ``filters`` (framework, family, kind) look at.
    """
    allowed = _allowed(filters, cases)
    lexical = _lexical(query, index)
    dense, weight = _dense(query, index, embedder)
    lexical_best = _by_case(lexical, index, allowed)
    dense_best = _by_case(dense, index, allowed)
    found = {*lexical_best, *dense_best, *(case for case in query.fired if allowed(case))}
    hits = []
    for case_id in found:
        score, why = 0.0, []
        dense_rank = lexical_rank = None
        if case_id in lexical_best:
            lexical_rank, chunk = lexical_best[case_id]
            score += _vote(lexical_rank)
            why.append(f"words: {', '.join(index.lexical.explain(query.terms, chunk))}")
        if case_id in dense_best and weight > 0:
            dense_rank, chunk = dense_best[case_id]
            score += weight * _vote(dense_rank)
            why.append(f"meaning: {index.chunks[chunk].part}")
        if case_id in query.fired:
            score += FIRED_WEIGHT * _vote(1)
            why.append("a rule fired")
        agreed = _agreement(query.facets, cases.get(case_id)) if cases else ()
        if agreed:
            score += FACET_WEIGHT * _vote(1) * len(agreed) / 4
            why.append(f"facts: {', '.join(agreed)}")
        hits.append(
            Hit(
                case_id=case_id,
                score=score,
                why=tuple(why),
                dense_rank=dense_rank,
                lexical_rank=lexical_rank,
                fired=case_id in query.fired,
            )
        )
    hits.sort(key=lambda hit: (-round(hit.score, 9), hit.case_id))
    return tuple(hits[:top_k])


def _vote(rank: int) -> float:
    return SMOOTHING / (SMOOTHING + rank)


def _lexical(query: Query, index: Index) -> list[tuple[int, float]]:
    chunks, scores = index.lexical.search(query.terms, DEPTH)
    return [(int(n), float(s)) for n, s in zip(chunks, scores, strict=True)]


def _dense(query: Query, index: Index, embedder: Embedder) -> tuple[list[tuple[int, float]], float]:
    known = embedder.known_share(query.embedded)
    if known < KNOWN_ENOUGH or not query.embedded.strip():
        return [], 0.0
    vector = np.asarray(embedder.embed_query(query.embedded), np.float32)
    numbers, scores = index.vectors.search(vector, DEPTH)
    return [(int(n), float(s)) for n, s in zip(numbers, scores, strict=True)], known


def _by_case(
    ranked: Sequence[tuple[int, float]], index: Index, allowed: Callable[[str], bool]
) -> dict[str, tuple[int, int]]:
    """Case → (rank among cases, its best chunk). Cases whose best chunks score alike share a rank."""
    best: dict[str, tuple[float, int]] = {}
    for chunk, score in ranked:
        if score <= 0:
            continue
        for case_id in index.chunks[chunk].cases:
            if allowed(case_id) and case_id not in best:
                best[case_id] = (score, chunk)
    ranks: dict[str, tuple[int, int]] = {}
    previous, rank = None, 0
    ordered = sorted(best.items(), key=lambda item: (-round(item[1][0], 6), item[0]))
    for place, (case_id, (score, chunk)) in enumerate(ordered, start=1):
        if previous is None or round(score, 6) != previous:
            previous, rank = round(score, 6), place
        ranks[case_id] = (rank, chunk)
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
        )

    return allowed


class KnowledgeRetriever(BaseRetriever):
    """The knowledge for other LangChain programs: a question in, cases out as documents, best first."""

    search: Any
    """A function from a text and a number of hits to `Hit`s, such as ``Advisor.search``."""
    page: Any
    """A function from a case id to its Markdown."""
    top_k: int = 4

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return [
            Document(
                page_content=self.page(hit.case_id),
                id=hit.case_id,
                metadata={"case_id": hit.case_id, "score": hit.score, "why": list(hit.why)},
            )
            for hit in self.search(query, self.top_k)
        ]
