"""The candidates for the cause of one question, and what they share. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.mechanism import origin_id, weigh_all
from trainmedic.kb.frameworks.profiles import profiles
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.report import Report
from trainmedic.service.question.intent import Intent
from trainmedic.service.question.query import MAX_QUESTION, pasted_parts
from trainmedic.service.ranking.features import Candidate, Context, overlap
from trainmedic.service.ranking.knowledge import Knowledge
from trainmedic.service.ranking.retrieve import Hit

MAX_SOURCE = 20_000
"""Code points of each pasted text that are searched for names of frameworks."""
_WORD = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def candidates_of(hits: Sequence[Hit], context: Context, knowledge: Knowledge) -> tuple[Candidate, ...]:
    """The retrieved causes, every case that a finding names, and what the evidence supports without a word of it:
    mechanisms for which more speaks than against, and their origins whose condition holds."""
    published = knowledge.published
    candidates = {
        hit.case_id: Candidate(
            cause=published[hit.case_id],
            fused=hit.fused,
            page=hit.page,
            words=hit.words,
            meaning=hit.meaning,
            pasted=hit.pasted,
        )
        for hit in hits
        if hit.case_id in published
    }
    named = [case_id for finding in context.report.findings for case_id in finding.cases]
    for weighed in context.weighed.values():
        if weighed.excluded_by or weighed.support <= weighed.contradiction:
            continue
        named.append(weighed.mechanism.id)
        for state in weighed.origins:
            if state.value is True:
                named += (origin_id(weighed.mechanism, state.origin), *state.origin.cases)
    for cause_id in named:
        if cause_id in published and cause_id not in candidates:
            candidates[cause_id] = Candidate(cause=published[cause_id])
    votes = {hit.case_id: hit.fused for hit in hits}

    def with_mechanism(candidate: Candidate) -> Candidate:
        mechanisms = [votes.get(place.mechanism, 0.0) for place in context.placed(candidate.cause.id)]
        return replace(candidate, mechanism=max(mechanisms, default=0.0))

    return tuple(with_mechanism(candidates[cause_id]) for cause_id in sorted(candidates))


def context_of(
    evidence: Evidence, report: Report, intent: Intent, hits: Sequence[Hit], knowledge: Knowledge
) -> Context:
    """What all candidates of one question share.

    Only the mechanisms that could matter are weighed: those of retrieved causes and of findings, and those that predict
    an observed symptom.
    """
    named = {hit.case_id for hit in hits} | {case_id for finding in report.findings for case_id in finding.cases}
    mechanisms = {place.mechanism for cause_id in named for place in knowledge.places.get(cause_id, ())}
    weighed = [
        mechanism
        for mechanism in knowledge.mechanisms.mechanisms
        if mechanism.id in mechanisms or overlap(mechanism.predicts, intent.symptoms)
    ]
    facts = Facts(evidence, concepts=frozenset(intent.concepts) - intent.negated)
    return Context(
        evidence=evidence,
        report=report,
        intent=intent,
        concepts=rarity(intent.concepts, knowledge.concept_counts, len(knowledge.concepts)),
        case_concepts=knowledge.concepts,
        case_titles=knowledge.titles,
        weighed=MappingProxyType(dict(weigh_all(weighed, facts))),
        places=knowledge.places,
        fix_values=knowledge.fix_values,
        named=named_frameworks(evidence, intent),
        pasted_concepts=frozenset(
            knowledge.glossary.ids("\n".join(text for _, text in pasted_parts(evidence))[:MAX_QUESTION])
        ),
        glossary=knowledge.glossary.concepts,
    )


def named_frameworks(evidence: Evidence, intent: Intent) -> frozenset[str]:
    """The frameworks that the question or the paste names in any form."""
    run = evidence.run
    words = set(_WORD.findall("\n".join(source.text[:MAX_SOURCE] for source in evidence.sources).lower()))
    listed = profiles().values()
    named = {p.name for p in listed if not words.isdisjoint((p.name, p.title.lower(), *p.aliases))}
    named |= {concept for concept, kind in intent.concepts.items() if kind == "framework"}
    return frozenset(named | evidence.versions.keys() | ({run.framework.value} if run.framework is not None else set()))


def rarity(concepts: Iterable[str], counts: Mapping[str, int], cases: int) -> Mapping[str, float]:
    """The weight of each concept: the fewer of the ``cases`` name it, the more it tells."""
    total = max(1, cases)
    return MappingProxyType(
        {concept: math.log((total + 1) / (counts.get(concept, 0) + 0.5)) for concept in sorted(concepts)}
    )
