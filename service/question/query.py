"""The query for retrieval: the question, and the facts that the evidence adds to it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from trainmedic.kb.glossary.terms import Glossary
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.report import Report, Status
from trainmedic.kb.store.tokens import tokens

MAX_QUESTION = 6_000
"""Code points of the question that are searched for; an article pasted as a question fits."""
CONCEPT_WEIGHT = 1.5
"""A glossary concept against a plain word: it is found in the other language too."""
FACT_WEIGHT = 0.6
"""A fact of the evidence (a signal, a setting, an exception) against a word of the question."""
MAX_WEIGHT = 3.0
"""The most that a repeated word weighs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """Facts of the run that a case can agree with."""

    framework: str | None = None
    algorithm: str | None = None
    stage: str | None = None
    model_family: str | None = None
    signals: frozenset[str] = frozenset()
    settings: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """``terms`` maps lexical tokens to weights; ``embedded`` is what the embedder reads (the English gist first);
    ``fired`` are the cases that fired rules name."""

    text: str
    embedded: str
    terms: Mapping[str, float]
    facets: Facets
    fired: tuple[str, ...] = ()


def build_query(evidence: Evidence, report: Report, question: str, *, glossary: Glossary) -> Query:
    """The query for one question. Pasted text adds only its facts, or it would drown the question."""
    text = question.strip()[:MAX_QUESTION]
    run = evidence.run
    facts = evidence_facts(evidence)
    terms = {term: min(float(count) ** 0.5, MAX_WEIGHT) for term, count in Counter(tokens(text)).items()}
    for concept in glossary.ids(f"{text}\n{facts}"):
        terms[f"g:{concept}"] = CONCEPT_WEIGHT
    for term in dict.fromkeys(tokens(facts)):
        terms[term] = max(terms.get(term, 0.0), FACT_WEIGHT)
    gist = glossary.expand(f"{text}\n{facts}", "en")
    return Query(
        text=text,
        embedded=f"{gist}. {text}" if gist else text or facts,
        terms=terms,
        facets=Facets(
            framework=run.framework.value if run.framework else None,
            algorithm=run.algorithm.value if run.algorithm else None,
            stage=run.stage.value if run.stage else None,
            model_family=run.model_family.value if run.model_family else None,
            signals=frozenset(signal.kind for signal in evidence.signals),
            settings=frozenset(name for name, setting in run.settings.items() if setting.option is not None),
        ),
        fired=tuple(dict.fromkeys(case for f in report.findings if f.status is Status.FIRED for case in f.cases)),
    )


def evidence_facts(evidence: Evidence) -> str:
    """The evidence in a few words: framework, algorithm, model, signals, the root exception."""
    run = evidence.run
    words = [fact.value for fact in (run.framework, run.algorithm, run.model_family) if fact is not None]
    kinds = {signal.kind for signal in evidence.signals}
    words += [kind.replace("_", " ") for kind in sorted(kinds) if kind != "healthy_log"]
    root = next((trace for trace in evidence.tracebacks if trace.root), None)
    if root is not None:
        words.append(f"{root.exception} {root.message[:300]}")
    return "\n".join(words)
