"""The sources that a model may cite: cases, findings and pasted places, numbered. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from trainmedic.kb.engine.mechanism import causes_of
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.report import Finding
from trainmedic.service.answer.citations import place, quote
from trainmedic.service.pipeline import Draft

MAX_FINDINGS = 6
MAX_PLACES = 3
"""Places of one finding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One numbered source. ``text`` is in the prompt, and the model's sentences are verified against it."""

    marker: int
    kind: Literal["case", "rule", "input"]
    id: str
    title: str
    text: str
    url: str | None = None
    quote: str | None = None


def considered(prepared: Draft) -> tuple[Case, ...]:
    """The causes that the model may cite, by id: those of the answer, and the mechanism that it is about."""
    cases = {cause.case.id: cause.case for cause in prepared.diagnosis.causes}
    belief = prepared.diagnosis.mechanism
    if belief is not None:
        cases.setdefault(belief.id, causes_of(belief.weighed.mechanism)[0])
    return tuple(sorted(cases.values(), key=lambda case: case.id))


def sources_of(prepared: Draft) -> tuple[Source, ...]:
    """The cases by id (for a common prompt prefix), then findings, then pasted places; numbered from 1."""
    language = prepared.language
    first = prepared.diagnosis.causes[0].case.id if prepared.diagnosis.causes else ""
    cases = considered(prepared)
    sources: list[Source] = []
    for case in cases:
        url = case.sources[0].url if case.sources else None
        text = case_text(case, language)
        if case.id == first:
            # Only for the first: what refutes the others would double the prompt and is seldom cited.
            text = f"{text}\n{more_text(case, language)}"
        title = case.title.get(language)
        sources.append(Source(marker=len(sources) + 1, kind="case", id=case.id, title=title, text=text, url=url))
    fired = prepared.diagnosis.findings[:MAX_FINDINGS]
    for finding in fired:
        title, text = finding.title.get(language), finding_text(finding, language)
        sources.append(Source(marker=len(sources) + 1, kind="rule", id=finding.rule_id, title=title, text=text))
    spans = {_id(span): span for finding in fired for span in _places(finding)}
    for id, span in spans.items():
        title, text = place(span, language), span.text
        sources.append(Source(marker=len(sources) + 1, kind="input", id=id, title=title, text=text, quote=quote(span)))
    return tuple(sources)


def seen_at(prepared: Draft, sources: Sequence[Source]) -> Mapping[str, tuple[int, ...]]:
    """The markers of each finding's places, by rule."""
    markers = {source.id: source.marker for source in sources if source.kind == "input"}
    return {
        finding.rule_id: tuple(dict.fromkeys(markers[_id(span)] for span in _places(finding)))
        for finding in prepared.diagnosis.findings[:MAX_FINDINGS]
    }


def case_text(case: Case, language: str) -> str:
    """A case for the model, the same for every question: where it applies, cause and fix."""
    affected = ", ".join(f"{package} {versions}" for package, versions in sorted(case.affected.items()))
    parts = [
        f"affected versions: {affected}" if affected else "",
        f"cause: {case.section('cause', language)}",
        f"fix: {case.section('fix', language)}",
    ]
    return "\n".join(part for part in parts if part)


def more_text(case: Case, language: str) -> str:
    """What is added for the first cause: what does not help, and how to confirm."""
    parts = [f"does not help: {r.claim.get(language)} Reason: {r.why.get(language)}" for r in case.refutations]
    return "\n".join([*parts, f"how to confirm: {case.section('confirm', language)}"])


def finding_text(finding: Finding, language: str) -> str:
    """A finding as a fact. Each part is one line, because it contains pasted values."""
    fixes = " ".join("; ".join(fix.text.get(language) for fix in finding.fixes).split())
    parts = [" ".join(finding.message.get(language).split()), f"fix: {fixes}" if fixes else ""]
    return "\n".join(part for part in parts if part)


def _places(finding: Finding) -> tuple[Span, ...]:
    return tuple(span for span in finding.evidence if not span.default)[:MAX_PLACES]


def _id(span: Span) -> str:
    return f"{span.attachment or ''}:{span.line}:{span.column}"
