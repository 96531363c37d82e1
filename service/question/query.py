"""What to search for: the question, and what the paste adds to it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from trainmedic.kb.glossary.terms import Glossary
from trainmedic.kb.language import language_of
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.report import Report, Status
from trainmedic.kb.store.tokens import tokens

MAX_QUESTION = 6_000
"""Code points of the question that are searched for; an article pasted as a question fits."""
CONCEPT_WEIGHT = 1.5
"""A glossary concept against a plain word: it is found in the other language too."""
FACT_WEIGHT = 0.6
"""A fact of the paste (a signal, a setting, an exception) against a word of the question."""
MANY = 3.0
"""A word said often is not asked about more than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """What a program knows about the run, for agreement with a case's own facts."""

    framework: str | None = None
    algorithm: str | None = None
    stage: str | None = None
    model_family: str | None = None
    signals: frozenset[str] = frozenset()
    settings: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """``terms`` maps lexical token → weight; ``embedded`` is what the embedder reads (the English gist first);
    ``fired`` are the cases that fired rules name."""

    text: str
    language: str
    embedded: str
    terms: Mapping[str, float]
    facets: Facets
    fired: tuple[str, ...] = ()


def build_query(evidence: Evidence, report: Report, question: str, *, glossary: Glossary) -> Query:
    """The query for one question. What was pasted only adds its facts: its text must not drown the question."""
    asked = question.strip()[:MAX_QUESTION]
    run = evidence.run
    signals = frozenset(signal.kind for signal in evidence.signals)
    written = frozenset(name for name, setting in run.settings.items() if setting.option is not None)
    facts = pasted_facts(evidence, signals)
    terms: dict[str, float] = {}
    for term, count in Counter(tokens(asked)).items():
        terms[term] = min(float(count) ** 0.5, MANY)
    for concept in glossary.ids(f"{asked}\n{facts}"):
        terms[f"g:{concept}"] = CONCEPT_WEIGHT
    for term in dict.fromkeys(tokens(facts)):
        terms[term] = max(terms.get(term, 0.0), FACT_WEIGHT)
    gist = glossary.expand(f"{asked}\n{facts}", "en")
    return Query(
        text=asked,
        language=language_of(asked or facts),
        embedded=f"{gist}. {asked}" if gist else asked or facts,
        terms=terms,
        facets=Facets(
            framework=run.framework.value if run.framework else None,
            algorithm=run.algorithm.value if run.algorithm else None,
            stage=run.stage.value if run.stage else None,
            model_family=run.model_family.value if run.model_family else None,
            signals=signals,
            settings=written,
        ),
        fired=tuple(dict.fromkeys(case for f in report.findings if f.status is Status.FIRED for case in f.cases)),
    )


def pasted_facts(evidence: Evidence, signals: frozenset[str]) -> str:
    """The paste in a few words: what was recognised, what goes wrong, the root exception."""
    run = evidence.run
    words = [fact.value for fact in (run.framework, run.algorithm, run.model_family) if fact is not None]
    words += [kind.replace("_", " ") for kind in sorted(signals) if kind != "healthy_log"]
    root = next((trace for trace in evidence.tracebacks if trace.root), None)
    if root is not None:
        words.append(f"{root.exception} {root.message[:300]}")
    return "\n".join(words)
