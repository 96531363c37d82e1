"""What a model may rest a sentence on: the cases, the findings and the pasted places, each under a number. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kb.model.case import Case
from kb.model.place import Span
from kb.model.report import Finding, Severity
from service.advisor import Prepared
from service.compose import place, quote
from service.features import finding_weight

MAX_FINDINGS = 6
MAX_PLACES = 3
"""Places of one finding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One numbered source. ``text`` is what the model reads of it and what its sentences are held against."""

    marker: int
    kind: Literal["case", "rule", "input"]
    id: str
    title: str
    text: str
    url: str | None = None
    quote: str | None = None


def sources_of(prepared: Prepared) -> tuple[Source, ...]:
    """Cases by id (so that questions about the same ones share the beginning of their prompts), then findings, then
    pasted places; numbered from 1."""
    language = prepared.answer.language
    first = prepared.diagnosis.causes[0].case.id if prepared.diagnosis.causes else ""
    cases = sorted((cause.case for cause in prepared.diagnosis.causes), key=lambda case: case.id)
    found: list[Source] = []
    for case in cases:
        url = case.sources[0].url if case.sources else None
        text = case_text(case, language, whole=case.id == first)
        found.append(_source(len(found) + 1, "case", case.id, case.title.get(language), text, url=url))
    fired = _findings(prepared)
    for finding in fired:
        title = finding.title.get(language)
        found.append(_source(len(found) + 1, "rule", finding.rule_id, title, finding_text(finding, language)))
    spans = dict.fromkeys(span for finding in fired for span in _places(finding))
    for span in spans:
        id = f"{span.attachment or ''}:{span.line}:{span.column}"
        found.append(_source(len(found) + 1, "input", id, place(span, language), span.text, quote=quote(span)))
    return tuple(found)


def case_text(case: Case, language: str, *, whole: bool) -> str:
    """A case for the model: cause and fix, for the first cause also what does not help and how to confirm."""
    affected = ", ".join(f"{package} {versions}" for package, versions in sorted(case.affected.items()))
    parts = [
        f"affected versions: {affected}" if affected else "",
        f"cause: {case.section('cause', language)}",
        f"fix: {case.section('fix', language)}",
    ]
    if whole:
        for each in case.refutations:
            parts.append(f"does not help: {each.claim.get(language)} Reason: {each.why.get(language)}")
        parts.append(f"how to confirm: {case.section('confirm', language)}")
    return "\n".join(part for part in parts if part)


def finding_text(finding: Finding, language: str) -> str:
    """A finding as a fact."""
    fixes = "; ".join(fix.text.get(language) for fix in finding.fixes)
    where = "; ".join(f"{place(span, language)} `{quote(span)}`" for span in _places(finding))
    parts = [finding.message.get(language), f"where: {where}" if where else "", f"fix: {fixes}" if fixes else ""]
    return "\n".join(part for part in parts if part)


def _findings(prepared: Prepared) -> list[Finding]:
    """The findings that fired, those about the question first."""
    symptoms = prepared.context.symptoms
    order = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}
    fired = sorted(
        prepared.context.report.fired,
        key=lambda finding: (-finding_weight(finding, symptoms), order[finding.severity], finding.rule_id),
    )
    return fired[:MAX_FINDINGS]


def _places(finding: Finding) -> tuple[Span, ...]:
    return tuple(span for span in finding.evidence if not span.default)[:MAX_PLACES]


def _source(
    marker: int,
    kind: Literal["case", "rule", "input"],
    id: str,
    title: str,
    text: str,
    *,
    url: str | None = None,
    quote: str | None = None,
) -> Source:
    return Source(marker=marker, kind=kind, id=id, title=title, text=text, url=url, quote=quote)
