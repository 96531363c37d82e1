"""The query for retrieval: the question, and the facts that the evidence adds to it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from trainmedic.kb.glossary.terms import Glossary
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.report import Report, Status
from trainmedic.kb.store.lexical import tokens

MAX_QUESTION = 6_000
"""Code points of the question that are searched for; an article pasted as a question fits."""
CONCEPT_WEIGHT = 1.5
"""A glossary concept against a plain word: it is found in the other language too."""
FACT_WEIGHT = 0.6
"""A fact of the evidence (a signal, a setting, an exception) against a word of the question."""
ERROR_WEIGHT, FRAME_WEIGHT, WRITTEN_WEIGHT = 1.0, 0.5, 0.4
"""Tokens of a paste: of errors and abnormal lines, of the innermost frames, of options and calls."""
INNERMOST = 6
MAX_MESSAGE, MAX_VALUE = 400, 40
GRAM = "3:"
MAX_WEIGHT = 3.0
"""The most that a repeated word weighs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """Facts of the run that a case can agree with."""

    framework: str | None = None
    algorithm: str | None = None
    model_family: str | None = None
    signals: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """``terms`` maps lexical tokens to weights; ``embedded`` is what the embedder reads (the English gist first);
    ``pasted`` are the tokens of the pasted files, searched for in a list of their own; ``fired`` are the cases that
    fired rules name."""

    text: str
    embedded: str
    terms: Mapping[str, float]
    facets: Facets
    pasted: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
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
        pasted=pasted_terms(evidence),
        facets=Facets(
            framework=run.framework.value if run.framework else None,
            algorithm=run.algorithm.value if run.algorithm else None,
            model_family=run.model_family.value if run.model_family else None,
            signals=frozenset(signal.kind for signal in evidence.signals),
        ),
        fired=tuple(dict.fromkeys(case for f in report.findings if f.status is Status.FIRED for case in f.cases)),
    )


def pasted_terms(evidence: Evidence) -> Mapping[str, float]:
    """The tokens of a paste that could name its cause: what failed and where, then what was written.

    Errors weigh most. Values and paths are left out: they are the user's own.
    """
    terms: dict[str, float] = {}
    for weight, text in pasted_parts(evidence):
        for term in tokens(text):
            if not term.startswith(GRAM):
                terms[term] = max(terms.get(term, 0.0), weight)
    return MappingProxyType(terms)


def pasted_parts(evidence: Evidence) -> Iterator[tuple[float, str]]:
    """Query texts of a paste with their weights."""
    for trace in evidence.tracebacks:
        yield ERROR_WEIGHT, f"{trace.exception} {trace.message[:MAX_MESSAGE]}"
        frames = [frame.rpartition("/")[2] for frame in trace.frames[-INNERMOST:]]
        yield FRAME_WEIGHT, " ".join(frames)
    for signal in evidence.signals:
        if not signal.stated:
            yield ERROR_WEIGHT, signal.span.text[:MAX_MESSAGE]
    for call in evidence.calls:
        yield WRITTEN_WEIGHT, f"{call.name} {' '.join(argument.key for argument in call.arguments)}"
    for option in evidence.run.options:
        value = option.value if isinstance(option.value, str) and len(option.value) <= MAX_VALUE else ""
        yield WRITTEN_WEIGHT, f"{option.key} {'' if '/' in value else value}"


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
