"""Sources of an answer, and where the page already shows them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from trainmedic.kb.engine.rule import RuleSet
from trainmedic.kb.model.place import Span
from trainmedic.service.answer.schema import Answer, Citation
from trainmedic.ui.chat.causes import branches
from trainmedic.ui.chat.evidence import first_sentences, render, shown_findings, spoken, whole_line
from trainmedic.ui.chat.excerpt import Excerpt, excerpts
from trainmedic.ui.chat.texts import Language


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedSource:
    """A citation with the grade of its case; ``citation.quote`` is shown on hover. ``at`` is the id of the part of the
    page that tells of it, ``line`` the line in that part; without either, its ``excerpts`` are shown by themselves."""

    citation: Citation
    grade: str | None
    at: str = ""
    line: Span | None = None
    excerpts: tuple[Excerpt, ...] = ()


def tail(answer: Answer, texts: Mapping[str | None, str], language: Language, rules: RuleSet | None = None) -> str:
    """The evidence that depends on the answer's text: its sources, the receipt, how it was made."""
    language = spoken(answer, language)
    inputs = list(answer.receipt.inputs)
    if answer.comparison is not None:
        names = {item.name for item in inputs}
        inputs += [item for item in answer.comparison.receipt.inputs if item.name not in names]
    return render("tail.html", language, a=answer, inputs=inputs, citations=cited(answer, texts, language, rules))


def cited(
    answer: Answer, texts: Mapping[str | None, str], language: Language, rules: RuleSet | None
) -> list[CitedSource]:
    """The citations, each with the part of the page that tells of it already."""
    named = {cause.case_id: cause for cause in answer.causes}
    findings = {finding.rule_id: finding for finding in answer.findings}
    told = {id for branch in branches(answer, language) for each in branch.walk() for id in each.ids}
    found, aside, _ = shown_findings(answer, texts, rules)
    marked = {(e.name, row.number) for each in (*found, *aside) for e in each.excerpts for row in e.rows if row.hit}
    sources = []
    for citation in answer.citations:
        source = CitedSource(citation=citation, grade=None)
        if citation.kind == "case" and citation.id in named:
            cause = named[citation.id]
            quote = citation.quote or first_sentences(cause.cause)
            source = CitedSource(citation=replace(citation, quote=quote), grade=cause.evidence_grade)
        elif citation.kind == "rule" and citation.id in findings:
            quote = citation.quote or first_sentences(findings[citation.id].message)
            source = CitedSource(citation=replace(citation, quote=quote), grade=None)
        if citation.kind == "input":
            span = _quoted_place(citation, texts)
            shown = (span.attachment, span.line) in marked
            source = replace(source, line=span if shown else None, excerpts=() if shown else excerpts([span], texts))
        elif citation.id in (told if citation.kind == "case" else findings):
            source = replace(source, at=f"tm-{citation.kind}-{citation.id}")
        sources.append(source)
    return sources


def _quoted_place(citation: Citation, texts: Mapping[str | None, str]) -> Span:
    """The place that a citation of the input is of: what it quotes, as far as that stands on one line."""
    name, line, column = citation.id.rsplit(":", 2)
    quote, number, start = citation.quote or "", int(line), int(column)
    rows = texts.get(name or None, "").split("\n")
    text = rows[number - 1][start - 1 :] if number <= len(rows) else quote
    return whole_line(name or None, number, text[: len(quote)] if text.startswith(quote) else text, start)
