"""Diagnosis to answer, without a model: the same object, every sentence from a case, a rule or the paste."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from trainmedic.kb.model.case import Case
from trainmedic.kb.model.evidence import Receipt
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.report import Finding, Severity, Status, Text
from trainmedic.service.answer import CauseView, Citation, RefutationView
from trainmedic.service.composition import phrases
from trainmedic.service.composition.option_names import other_names
from trainmedic.service.composition.views import finding_view, missing_view
from trainmedic.service.composition.what_if import supposition
from trainmedic.service.ranking.diagnose import Cause, Diagnosis
from trainmedic.service.ranking.features import Context
from trainmedic.service.what_if.apply import Effect, WhatIf

MAX_EVIDENCE = 3
"""Places quoted for one finding."""
MAX_QUOTE = 160
"""Code points of one quoted place."""
_TICKS = re.compile("`+")  # a pasted fence must not end the block that its text is quoted in
_ORDINARY = re.compile(r"[\w.\-/ +,@=~()（）]{1,200}")
_BRACKETS = str.maketrans("[]<>`", "［］‹›'")
_LINK = re.compile(r"\[([^\]\n]*)\]\(([^)\n]*)\)")
_MARKS = re.compile(r"^```[^\n]*\n?|\*\*|`+|^#+\s*|^>\s?", re.MULTILINE)


@dataclass(slots=True)
class Citations:
    """Hands out markers: one for each thing cited, in the order of first use."""

    language: str
    found: dict[tuple[str, str], Citation] = field(default_factory=dict)
    first: int = 1  # the lowest marker that may be handed out

    def case(self, case: Case) -> str:
        """The marker of a case."""
        url = case.sources[0].url if case.sources else None
        return self._marker("case", case.id, case.title.get(self.language), url, None)

    def rule(self, finding: Finding) -> str:
        """The marker of a rule."""
        return self._marker("rule", finding.rule_id, finding.title.get(self.language), None, None)

    def effect(self, effect: Effect) -> str:
        """The marker of a rule that a supposed change concerns."""
        return self._marker("rule", effect.rule_id, effect.title.get(self.language), None, None)

    def place(self, span: Span) -> str:
        """The marker of a pasted place."""
        name = place(span, self.language)
        return self._marker("input", f"{span.attachment or ''}:{span.line}:{span.column}", name, None, quote(span))

    def all(self) -> tuple[Citation, ...]:
        """Everything cited, in marker order."""
        return tuple(self.found.values())

    def _marker(self, kind: str, id: str, title: str, url: str | None, quoted: str | None) -> str:
        key = (kind, id)
        if key not in self.found:
            number = max([self.first - 1, *(each.marker for each in self.found.values())]) + 1
            self.found[key] = Citation(marker=number, kind=kind, id=id, title=title, url=url, quote=quoted)  # type: ignore[arg-type]
        return f"[{self.found[key].marker}]"


def compose(
    diagnosis: Diagnosis, context: Context, language: str, supposed: WhatIf | None = None, *, same: bool = False
) -> tuple[str, tuple[Citation, ...]]:
    """The answer's Markdown and what its markers point at. What a supposed change does stands first.

    ``same``: the answer before this one came to the same; behind a supposition it is then cut to its fix.
    """
    citations = Citations(language)
    parts = [receipt_line(context.evidence.receipt, language)]
    if supposed is not None:
        first = diagnosis.causes[0] if diagnosis.causes else None
        parts.append(supposition(supposed, first, citations.effect, language))
    if same:
        parts.append((phrases.UNCHANGED if supposed is None else phrases.UNCHANGED_AS_IS).get(language))
    lead, likely = diagnosis.lead, diagnosis.likely
    if lead is None:
        parts.append(_without_cause(diagnosis, context, language))
    else:
        brief = same and supposed is not None
        parts += _with_cause(lead, diagnosis, context, citations, brief=brief)
    others = _likely(likely, citations) + _others(diagnosis, lead or likely, citations)
    after = [others, _asks(diagnosis, language)]
    # Asked back, the question itself comes first; behind an answer it comes last.
    parts += after[::-1] if diagnosis.verdict == "need_input" else after
    parts.append(_listed(diagnosis, context, lead, citations))
    return "\n\n".join(part for part in parts if part), citations.all()


def behind(diagnosis: Diagnosis, context: Context, citations: Citations) -> str:
    """What stands behind a text that a model wrote about the first cause: the patch, the questions, other findings."""
    language = citations.language
    lead = diagnosis.causes[0] if diagnosis.causes else None
    fired = [f for f in context.report.fired if lead is not None and (f in lead.findings or f in diagnosis.related)]
    parts = [
        _names(lead.case, context, language) if lead is not None else "",
        _section("patch", _patch(fired, language), language),
        _others(diagnosis, lead, citations),
        _asks(diagnosis, language),
        _listed(diagnosis, context, lead, citations),
    ]
    return "\n\n".join(part for part in parts if part)


def receipt_line(receipt: Receipt, language: str) -> str:
    """One line (two or three where something was masked or unreadable) on what was read."""
    inputs = []
    for item in receipt.inputs:
        name = shown_name(item.name) if item.name else phrases.QUESTION.get(language)
        cut = phrases.CUT.get(language) if item.truncated else ""
        inputs.append(phrases.LINES.get(language).format(name=name, kind=item.kind, lines=item.lines, cut=cut))
    joiner = "、" if language == "zh" else ", "
    lines = [phrases.RECEIPT.get(language).format(inputs=joiner.join(inputs))] if inputs else []
    if receipt.masked:
        masked = joiner.join(f"{count} × {kind}" for kind, count in receipt.masked)
        lines.append(phrases.MASKED.get(language).format(masked=masked))
    if receipt.problems:
        shown = joiner.join(
            f"{place(p.span, language)} {p.code}" if p.span else p.code for p in receipt.problems[:MAX_EVIDENCE]
        )
        lines.append(phrases.PROBLEMS.get(language).format(problems=shown))
    return "\n".join(f"> {line}" for line in lines)


def _without_cause(diagnosis: Diagnosis, context: Context, language: str) -> str:
    wrong = any(f.severity is Severity.ERROR and f.concludes == "fault" for f in context.report.fired)
    if diagnosis.verdict == "not_in_kb" and wrong:
        return phrases.LEAD["not_in_kb_found"].get(language)
    if diagnosis.verdict != "no_fault":
        return phrases.LEAD[diagnosis.verdict].get(language)
    return phrases.LEAD["healthy" if context.evidence.rows else "healthy_config"].get(language)


def _with_cause(
    cause: Cause, diagnosis: Diagnosis, context: Context, citations: Citations, *, brief: bool = False
) -> list[str]:
    language, case = citations.language, cause.case
    marker = citations.case(case)
    words = {
        "confidence": phrases.CONFIDENCE[cause.confidence].get(language),
        "grade": phrases.GRADE[case.evidence].get(language),
    }
    fired = [f for f in context.report.fired if f in cause.findings or f in diagnosis.related]
    fired.sort(key=lambda f: f not in cause.findings)
    lead = [
        phrases.LEAD[diagnosis.verdict].get(language).format(title=case.title.get(language), marker=marker),
        # "Nothing is wrong" rests on the log; how likely this explanation of it is would read as a doubt about that.
        (phrases.GRADED if diagnosis.verdict == "no_fault" else phrases.SURE).get(language).format(**words),
    ]
    fix = _section("fix", _fix(case, fired, context, marker, language), language)
    if brief:
        return [*lead, fix]
    return [
        *lead,
        _section("cause", marked(case.section("cause", language), marker), language),
        _section("seen", "\n".join(_seen(finding, citations) for finding in fired), language),
        fix,
        _section("refuted", _refuted(case, marker, language), language),
        _section("confirm", marked(case.section("confirm", language), marker), language),
    ]


def _likely(cause: Cause | None, citations: Citations) -> str:
    """What an answer that asks back already says: the best candidate so far, and what would not help."""
    if cause is None:
        return ""
    language, case = citations.language, cause.case
    marker = citations.case(case)
    sure = phrases.SURE.get(language).format(
        confidence=phrases.CONFIDENCE[cause.confidence].get(language), grade=phrases.GRADE[case.evidence].get(language)
    )
    body = f"**{case.title.get(language)}** {marker}\n\n{sure}\n\n{marked(case.section('cause', language), marker)}"
    parts = [
        _section("likely", body, language),
        _section("confirm", marked(case.section("confirm", language), marker), language),
        _section("refuted", _refuted(case, marker, language), language),
    ]
    return "\n\n".join(part for part in parts if part) + "\n\n"


def _refuted(case: Case, marker: str, language: str) -> str:
    colon = "：" if language == "zh" else ": "
    return "\n".join(
        f"- {r.claim.get(language).rstrip('.。')}{colon}{r.why.get(language)} {marker}" for r in case.refutations
    )


def marked(text: str, marker: str) -> str:
    """A section with its marker: behind the last word, but never on the line that closes a code block."""
    text = text.rstrip()
    if not text:
        return ""
    return f"{text}\n\n{marker}" if text.endswith("```") else f"{text} {marker}"


def _fix(case: Case, fired: Sequence[Finding], context: Context, marker: str, language: str) -> str:
    text = marked(case.section("fix", language), marker)
    parts = (text, _names(case, context, language), _patch(fired, language))
    return "\n\n".join(part for part in parts if part)


def _names(case: Case, context: Context, language: str) -> str:
    """What the recommended options are called in the user's framework, where it spells them otherwise."""
    framework, pairs = other_names(case, context.evidence)
    names = ", ".join(f"`{there}` → `{here}`" for there, here in pairs)
    return phrases.NAMES_HERE.get(language).format(framework=framework, names=names) if names else ""


def _patch(fired: Sequence[Finding], language: str) -> str:
    """The first fix that edits the user's own text, as a diff, with what it clears when applied."""
    for finding in fired:
        view = finding_view(finding, language)
        if view.patch is None:
            continue
        note = phrases.PATCH.get(language).format(clears=", ".join(view.clears)) if view.clears else ""
        note += phrases.APPEARS.get(language).format(appears=", ".join(view.appears)) if view.appears else ""
        fence = "`" * max(3, 1 + max((len(run) for run in _TICKS.findall(view.patch)), default=0))
        return f"{view.fix}\n\n{fence}diff\n{view.patch.rstrip()}\n{fence}\n{note}".rstrip()
    return ""


def _seen(finding: Finding, citations: Citations) -> str:
    language = citations.language
    lines = [f"- {finding.message.get(language)} {citations.rule(finding)}"]
    for span in finding.evidence[:MAX_EVIDENCE]:
        where = place(span, language)
        if span.default:
            lines.append("  - " + phrases.DEFAULT.get(language).format(place=where))
        else:
            shown = phrases.AT.get(language).format(place=where, text=quote(span).replace("`", "'"))
            lines.append(f"  - {shown} {citations.place(span)}")
    return "\n".join(lines)


def _others(diagnosis: Diagnosis, lead: Cause | None, citations: Citations) -> str:
    language = citations.language
    rest = [cause for cause in diagnosis.causes if cause is not lead]
    lines = [
        f"- {cause.case.title.get(language)} ({phrases.CONFIDENCE[cause.confidence].get(language)}) "
        f"{citations.case(cause.case)}"
        for cause in rest
    ]
    return _section("other", "\n".join(lines), language)


def _asks(diagnosis: Diagnosis, language: str) -> str:
    views = [missing_view(item, language) for item in diagnosis.missing]
    lines = [f"{number}. {view.ask} {view.why}" for number, view in enumerate(views, start=1)]
    if not lines:
        return ""
    return "\n".join(lines) if diagnosis.verdict == "need_input" else _section("ask", "\n".join(lines), language)


def _listed(diagnosis: Diagnosis, context: Context, lead: Cause | None, citations: Citations) -> str:
    related = diagnosis.related
    others = [f for f in context.report.fired if f not in related and (lead is None or f not in lead.findings)]
    language = citations.language
    # With a first cause, what is related stands beside it already.
    seen = "" if lead is not None else "\n".join(_seen(f, citations) for f in related)
    parts = [
        _section("seen", seen, language),
        _section("listed", "\n".join(_seen(f, citations) for f in others), language),
    ]
    return "\n\n".join(part for part in parts if part)


def _section(name: str, body: str, language: str) -> str:
    return f"### {phrases.HEADINGS[name].get(language)}\n\n{body}" if body.strip() else ""


def cause_views(diagnosis: Diagnosis, language: str) -> tuple[CauseView, ...]:
    """The causes for the wire, plain text in ``language``."""
    return tuple(
        CauseView(
            rank=rank,
            case_id=cause.case.id,
            title=cause.case.title.get(language),
            cause=plain_text(cause.case.section("cause", language)),
            fix=plain_text(cause.case.section("fix", language)),
            confidence=cause.confidence,
            score=round(cause.probability, 4),
            evidence_grade=cause.case.evidence,
            cases=(cause.case.id, *cause.case.related),
            findings=tuple(sorted({f.rule_id for f in cause.findings if f.status is Status.FIRED})),
            refutations=tuple(
                RefutationView(claim=r.claim.get(language), why=r.why.get(language)) for r in cause.case.refutations
            ),
            why=tuple(name for name, value in cause.features.items() if value > 0),
        )
        for rank, cause in enumerate(diagnosis.causes, start=1)
    )


def place(span: Span, language: str) -> str:
    """``train.sh:12:3``, or the question's own name."""
    name = shown_name(span.attachment) if span.attachment is not None else phrases.QUESTION.get(language)
    return f"{name}:{span.line}:{span.column}"


def shown_name(name: str) -> str:
    """The name of a pasted text in Markdown: ordinary ones as they are, any other as code that has no brackets.

    Whoever names a file chooses what stands in every answer: it must not look like a citation, a link or a tag.
    """
    if _ORDINARY.fullmatch(name) and not name.lower().startswith("www."):
        return name
    return f"`{' '.join(name.translate(_BRACKETS).split())}`"


def quote(span: Span) -> str:
    """The pasted text on one line, shortened."""
    text = " ".join(span.text.split())
    return text if len(text) <= MAX_QUOTE else text[: MAX_QUOTE - 1] + "…"


def plain_text(markdown: str) -> str:
    """Markdown without its marks; links keep their words."""
    return _MARKS.sub("", _LINK.sub(r"\1", markdown)).strip()


NO_MODEL: Text = phrases.NO_MODEL
