"""The candidates for the cause of one question, and what they share. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from trainmedic.kb.model.case import Case
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.report import Report
from trainmedic.service.question.intent import Intent
from trainmedic.service.ranking.features import Context, Scored
from trainmedic.service.ranking.knowledge import Knowledge
from trainmedic.service.ranking.retrieve import Hit


def candidates_of(hits: Sequence[Hit], report: Report, published: Mapping[str, Case]) -> tuple[Scored, ...]:
    """The retrieved cases, and every case that a finding names: a rule brings its cases with it."""
    best = max((hit.score for hit in hits), default=0.0) or 1.0
    words, meaning = margins([hit.words for hit in hits]), margins([hit.meaning for hit in hits])
    candidates = {
        hit.case_id: Scored(
            case=published[hit.case_id],
            score=hit.score / best,
            lead=float(rank == 0),
            words=hit.words,
            meaning=hit.meaning,
            words_ahead=words[rank],
            meaning_ahead=meaning[rank],
        )
        for rank, hit in enumerate(hits)
        if hit.case_id in published
    }
    for finding in report.findings:
        for case_id in finding.cases:
            if case_id in published and case_id not in candidates:
                candidates[case_id] = Scored(case=published[case_id], score=0.0, lead=0.0)
    return tuple(candidates.values())


def context_of(evidence: Evidence, report: Report, intent: Intent, knowledge: Knowledge) -> Context:
    """What all candidates of one question share."""
    return Context(
        evidence=evidence,
        report=report,
        intent=intent,
        concepts=rarity(intent.concepts, knowledge.concepts),
        case_concepts=knowledge.concepts,
        case_titles=knowledge.titles,
    )


def margins(values: Sequence[float]) -> tuple[float, ...]:
    """Each value less the greatest of the others; 0 for a single one."""
    first, second = (*sorted(values, reverse=True), 0.0, 0.0)[:2]
    return tuple(value - (second if value == first else first) for value in values) if len(values) > 1 else (0.0,)


def rarity(concepts: Iterable[str], case_concepts: Mapping[str, frozenset[str]]) -> Mapping[str, float]:
    """The weight of each concept: the fewer cases name it, the more it tells."""
    total = max(1, len(case_concepts))
    counts = {concept: sum(concept in names for names in case_concepts.values()) for concept in concepts}
    return MappingProxyType(
        {concept: math.log((total + 1) / (count + 0.5)) for concept, count in sorted(counts.items())}
    )
