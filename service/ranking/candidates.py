"""The candidates for the cause of one question, and what they share. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from trainmedic.kb.audit.audit import condition_state
from trainmedic.kb.audit.defect import Defect
from trainmedic.kb.engine.facts import FactBook
from trainmedic.kb.engine.mechanism import origin_id, weigh_all
from trainmedic.kb.frameworks.profiles import profiles, select
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.report import Report
from trainmedic.kb.pages.defect import framework_of, signs_of_packages
from trainmedic.kb.threads.thread import SimilarThread
from trainmedic.service.dialogue.intent import Intent
from trainmedic.service.dialogue.query import MAX_QUESTION, pasted_parts
from trainmedic.service.ranking.features import Candidate, Context, DefectState, below, overlap, said_concepts
from trainmedic.service.ranking.knowledge import Knowledge
from trainmedic.service.ranking.retrieve import Hit
from trainmedic.service.ranking.similar import reports_of

MAX_SOURCE = 20_000
"""Code points of each pasted text that are searched for names of frameworks."""
REPORTED = 0.4
"""How much must speak of a cause or mechanism in similar threads for it to take part by this alone."""
_WORD = regex(r"[a-z0-9]+(?:-[a-z0-9]+)*")


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
            pasted=hit.pasted,
        )
        for hit in hits
        if hit.case_id in published and not _ruled_out(hit.case_id, context)
    }
    named = [case_id for finding in context.report.findings for case_id in finding.cases]
    for weighed in context.weighed.values():
        if weighed.excluded_by or weighed.support <= weighed.contradiction:
            continue
        named.append(weighed.mechanism.id)
        for state in weighed.origins:
            if state.value is True:
                named += (origin_id(weighed.mechanism, state.origin), *state.origin.cases)
    named += [name for name, state in context.defects.items() if state.printed]
    named += [name for name, report in context.reports.items() if report.weight >= REPORTED]
    for cause_id in named:
        if cause_id in published and cause_id not in candidates:
            candidates[cause_id] = Candidate(cause=published[cause_id])
    votes = {hit.case_id: hit.fused for hit in hits}

    def with_mechanism(candidate: Candidate) -> Candidate:
        best = max((votes.get(place.mechanism, 0.0) for place in context.placed(candidate.cause.id)), default=0.0)
        return replace(candidate, mechanism=best) if best else candidate

    return tuple(with_mechanism(candidates[cause_id]) for cause_id in sorted(candidates))


def context_of(
    evidence: Evidence,
    report: Report,
    intent: Intent,
    hits: Sequence[Hit],
    knowledge: Knowledge,
    impossible: Collection[str] = (),
    similar: tuple[SimilarThread, ...] = (),
    book: FactBook | None = None,
) -> Context:
    """Data shared by all candidates of one question.

    Only the mechanisms that could matter are weighed: those of retrieved causes and of findings, and those that predict
    an observed symptom. Of the known defects those that were retrieved or whose message was pasted, unless they are
    ``impossible``.
    """
    reports = {
        name: report for name, report in reports_of(similar, knowledge.sources).items() if name not in impossible
    }
    named = {hit.case_id for hit in hits} | {case_id for finding in report.findings for case_id in finding.cases}
    named |= reports.keys() & knowledge.published.keys()
    mechanisms = {place.mechanism for cause_id in named for place in knowledge.places.get(cause_id, ())}
    weighed = [
        mechanism
        for mechanism in knowledge.mechanisms.mechanisms
        if mechanism.id in mechanisms or overlap(mechanism.predicts, intent.symptoms)
    ]
    book = book or FactBook(evidence, said_concepts(intent))
    printed = _printed(knowledge.defect_of, book) - frozenset(impossible)
    return Context(
        evidence=evidence,
        report=report,
        intent=intent,
        concepts=rarity(intent.concepts, knowledge.concept_counts, len(knowledge.concepts)),
        case_concepts=knowledge.concepts,
        case_titles=knowledge.titles,
        weighed=MappingProxyType(dict(weigh_all(weighed, book.main))),
        places=knowledge.places,
        defects=MappingProxyType(
            {
                name: _defect_state(knowledge.defect_of[name], name in printed, book)
                for name in sorted((printed | named) & knowledge.defect_of.keys())
            }
        ),
        named=named_frameworks(evidence, intent),
        unsaid=_unsaid_libraries(evidence, intent),
        pasted_concepts=frozenset(
            knowledge.glossary.ids("\n".join(text for _, text in pasted_parts(evidence))[:MAX_QUESTION])
        ),
        glossary=knowledge.glossary.concepts,
        similar=similar,
        reports=MappingProxyType(reports),
        book=book,
    )


def named_frameworks(evidence: Evidence, intent: Intent) -> frozenset[str]:
    """The frameworks that the question or the paste names in any form."""
    run = evidence.run
    words = _words(evidence)
    listed = profiles().values()
    named = {p.name for p in listed if not words.isdisjoint((p.name, p.title.lower(), *p.aliases))}
    named |= {concept for concept, kind in intent.concepts.items() if kind == "framework"}
    return frozenset(named | evidence.versions.keys() | ({run.framework.value} if run.framework is not None else set()))


def _unsaid_libraries(evidence: Evidence, intent: Intent) -> frozenset[str]:
    """The packages that not every run uses, and of which neither the question nor the paste shows a sign."""
    words = _words(evidence) | intent.concepts.keys()
    signs = signs_of_packages()
    return frozenset(name for name in signs if words.isdisjoint(signs[name]) and name not in evidence.versions)


def _words(evidence: Evidence) -> set[str]:
    return set(_WORD.findall("\n".join(source.text[:MAX_SOURCE] for source in evidence.sources).lower()))


def rarity(concepts: Iterable[str], counts: Mapping[str, int], cases: int) -> Mapping[str, float]:
    """The weight of each concept: the fewer of the ``cases`` name it, the more it tells."""
    total = max(1, cases)
    return MappingProxyType(
        {concept: math.log((total + 1) / (counts.get(concept, 0) + 0.5)) for concept in sorted(concepts)}
    )


def _ruled_out(cause_id: str, context: Context) -> bool:
    """Whether a known defect's condition does not hold on what was pasted, or the check that is a cause by itself."""
    state = context.defects.get(cause_id)
    if state is not None:
        return state.value is False and not state.printed
    return cause_id in context.report.ruled_out and not context.placed(cause_id)


def _defect_state(defect: Defect, printed: bool, book: FactBook) -> DefectState:
    runs = book.runs if book.evidence.runs else ()
    value = condition_state(defect, runs)[0] if defect.when and runs else None
    return DefectState(value=value, printed=printed)


def _printed(defects: Mapping[str, Defect], book: FactBook) -> frozenset[str]:
    """The known defects whose message was pasted."""
    find = book.haystack.find
    return frozenset(defect.id for defect in defects.values() if defect.message and find(defect.message) is not None)


def impossible_defects(evidence: Evidence, intent: Intent, knowledge: Knowledge) -> frozenset[str]:
    """The known defects that this run cannot have: its version is another one, or its framework does not run on the
    package."""
    named = named_frameworks(evidence, intent)
    framework = evidence.run.framework.value if evidence.run.framework is not None else ""
    libraries = below(framework)
    impossible: set[str] = set()
    for package, defects in knowledge.defects.by_package.items():
        owner = framework_of(package)
        foreign = owner and owner != framework and owner not in named and (framework or named)
        if foreign and not (framework and owner in libraries):
            impossible.update(defect.id for defect in defects)
        elif (version := evidence.versions.get(package)) is not None:
            impossible |= knowledge.outside(package, version.exact, version.low, version.high)
    return frozenset((*impossible, *_of_other_engines(evidence, knowledge)))


def _of_other_engines(evidence: Evidence, knowledge: Knowledge) -> Iterator[str]:
    """The causes about another engine than the one that generates the rollouts of this run."""
    setting = evidence.run.settings.get("rollout_engine")
    engine = setting.value if setting is not None and not setting.is_default else None
    others = {*select("server")} - {engine} if engine in select("server") else set()
    for cause in knowledge.published.values() if others else ():
        title = cause.title.en.lower()
        if str(engine) not in title and any(other in title for other in others):
            yield cause.id
