"""The sections of an answer, composed from a diagnosis without a model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from trainmedic.kb.engine.mechanism import Mechanism, Origin, origin_id
from trainmedic.kb.fences import fence_around
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.evidence import Receipt
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.report import Finding, Severity, Status
from trainmedic.service.answer import CauseView, Citation, MechanismRef, RefutationView, Section, StatementView
from trainmedic.service.composition.checkup import checkup
from trainmedic.service.composition.differential import Reasons, Tree
from trainmedic.service.composition.follow_up import changes_section
from trainmedic.service.composition.messages import messages
from trainmedic.service.composition.option_names import other_names
from trainmedic.service.composition.views import finding_view, joined, missing_view
from trainmedic.service.composition.what_if import supposition
from trainmedic.service.ranking.diagnose import Diagnosis, complaint, nothing_readable, unread_log
from trainmedic.service.ranking.features import Context
from trainmedic.service.ranking.inference import Cause, MechanismBelief
from trainmedic.service.what_if.apply import Effect, WhatIf
from trainmedic.service.what_if.compare import Difference

MAX_EVIDENCE = 3
"""Places quoted for one finding."""
MAX_ORIGINS = 5
MAX_REASONS = 2
"""Reasons named on a cause's line."""
MAX_QUOTE = 160
"""Code points of one quoted place."""
_ORDINARY = re.compile(r"[\w.\-/ +,@=~()（）]{1,200}")
_BRACKETS = str.maketrans("[]<>`", "［］‹›'")
_LINK = re.compile(r"\[([^\]\n]*)\]\(([^)\n]*)\)")
_MARKS = re.compile(r"^```[^\n]*\n?|\*\*|`+|^#+\s*|^>\s?", re.MULTILINE)

Sections = tuple[Section, ...]


@dataclass(slots=True)
class Citations:
    """Assigns markers: one for each cited thing, in the order of first use."""

    language: str
    found: dict[tuple[str, str], Citation] = field(default_factory=dict)
    first: int = 1  # the lowest marker that may be assigned

    def case(self, case: Case) -> int:
        url = case.sources[0].url if case.sources else None
        return self._marker("case", case.id, case.title.get(self.language), url, None)

    def mechanism(self, mechanism: Mechanism, origin: Origin | None = None) -> int:
        """The marker of a mechanism or of one of its origins."""
        url = mechanism.sources[0].url if mechanism.sources else None
        if origin is None:
            return self._marker("case", mechanism.id, mechanism.title.get(self.language), url, None)
        return self._marker("case", origin_id(mechanism, origin), origin.title.get(self.language), url, None)

    def rule(self, finding: Finding) -> int:
        return self._marker("rule", finding.rule_id, finding.title.get(self.language), None, None)

    def effect(self, effect: Effect) -> int:
        """The marker of a rule that a supposed change affects."""
        return self._marker("rule", effect.rule_id, effect.title.get(self.language), None, None)

    def place(self, span: Span) -> int:
        name = place(span, self.language)
        return self._marker("input", f"{span.attachment or ''}:{span.line}:{span.column}", name, None, quote(span))

    def all(self) -> tuple[Citation, ...]:
        return tuple(self.found.values())

    def _marker(
        self, kind: Literal["case", "rule", "input"], id: str, title: str, url: str | None, quoted: str | None
    ) -> int:
        key = (kind, id)
        if key not in self.found:
            number = max([self.first - 1, *(citation.marker for citation in self.found.values())]) + 1
            self.found[key] = Citation(marker=number, kind=kind, id=id, title=title, url=url, quote=quoted)
        return self.found[key].marker


def compose(
    diagnosis: Diagnosis,
    context: Context,
    language: str,
    supposed: WhatIf | None = None,
    *,
    same: bool = False,
    changes: Difference | None = None,
) -> tuple[Sections, tuple[Citation, ...]]:
    """The answer's sections and their citations. The effect of a supposed change comes first, or what changed since
    the previous answer.

    ``same``: the previous answer had the same verdict and cause; after a supposition the answer is then cut to its fix.
    """
    citations = Citations(language)
    sections = [*opening(diagnosis, context, citations, supposed)]
    if changes is not None:
        sections += changes_section(changes, citations.rule, language)
    if same:
        name = "unchanged" if supposed is None else "unchanged_as_is"
        sections.append(Section(kind="unchanged", body=messages(name, language)))
    lead, likely, belief = diagnosis.lead, diagnosis.likely, diagnosis.mechanism
    faults = config_faults(diagnosis, context)
    if faults:
        lead = None
        sections += _config_faults(faults, citations)
    elif belief is not None:
        sections += _with_mechanism(belief, diagnosis, context, citations)
    elif lead is not None:
        brief = same and supposed is not None
        sections += _with_cause(lead, diagnosis, context, citations, brief=brief)
    else:
        sections.append(Section(kind="lead", body=_without_cause(diagnosis, context, language)))
    if diagnosis.verdict == "no_fault":
        sections += _headed("checkup", _list("checkup", list(checkup(context, language)), ()), language)
    others = (*_likely(likely, diagnosis, context, citations), *_others(diagnosis, context, lead or likely, citations))
    asks = _asks(diagnosis, language, headed=bool(faults))
    # If the verdict asks back, the questions come first; after an answer they come last.
    sections += (*asks, *others) if diagnosis.verdict == "need_input" and not faults else (*others, *asks)
    sections += _listed(diagnosis, context, lead, citations, faults)
    return tuple(sections), citations.all()


def opening(
    diagnosis: Diagnosis, context: Context, citations: Citations, supposed: WhatIf | None = None
) -> Iterator[Section]:
    """The beginning of every answer, whoever writes its text: the receipt, and the effect of a supposed change."""
    if lines := receipt_lines(context.evidence.receipt, citations.language):
        yield Section(kind="receipt", body="\n".join(f"> {line}" for line in lines), items=tuple(lines))
    if supposed is not None:
        first = diagnosis.causes[0] if diagnosis.causes else None
        effects = supposition(supposed, first, citations.effect, citations.language)
        if effects.body:
            yield effects


def appended(diagnosis: Diagnosis, context: Context, citations: Citations) -> Sections:
    """The sections after a model's explanation of the first cause: the patch, other causes, questions, findings."""
    language = citations.language
    lead = diagnosis.causes[0] if diagnosis.causes else None
    fired = [f for f in context.report.fired if lead is not None and (f in lead.findings or f in diagnosis.related)]
    return (
        *(_names(lead.case, context, language) if lead is not None else ()),
        *_headed("patch", _patch(fired, language), language),
        *_others(diagnosis, context, lead, citations),
        *_asks(diagnosis, language),
        *_listed(diagnosis, context, lead, citations),
    )


def receipt_lines(receipt: Receipt, language: str) -> list[str]:
    """What was read, and if any, what was masked and what could not be read."""
    inputs = []
    for item in receipt.inputs:
        name = shown_name(item.name) if item.name else messages("question", language)
        cut = messages("cut", language) if item.truncated else ""
        inputs.append(messages("lines", language, name=name, kind=item.kind, count=item.lines, cut=cut))
    joiner = "、" if language == "zh" else ", "
    lines = [messages("receipt", language, inputs=joiner.join(inputs))] if inputs else []
    if receipt.masked:
        masked = joiner.join(f"{count} × {kind}" for kind, count in receipt.masked)
        lines.append(messages("masked", language, masked=masked))
    if receipt.problems:
        problems = joiner.join(
            f"{place(p.span, language)} {p.code}" if p.span else p.code for p in receipt.problems[:MAX_EVIDENCE]
        )
        lines.append(messages("problems", language, problems=problems))
    return lines


def _without_cause(diagnosis: Diagnosis, context: Context, language: str) -> str:
    receipt = context.evidence.receipt
    if nothing_readable(context.evidence) and not diagnosis.causes:
        names = [shown_name(item.name) for item in receipt.inputs if item.name is not None]
        return messages("lead.unreadable", language, names=("、" if language == "zh" else ", ").join(names))
    unread = unread_log(context.evidence)
    if unread is not None and unread.name is not None and diagnosis.verdict == "need_input" and not diagnosis.causes:
        return messages("lead.unread", language, name=shown_name(unread.name))
    wrong = any(f.severity is Severity.ERROR and f.concludes == "fault" for f in context.report.fired)
    if diagnosis.verdict == "not_in_kb" and wrong:
        return messages("lead.not_in_kb_found", language)
    if diagnosis.verdict == "need_input" and not diagnosis.missing:
        return messages("lead.open" if diagnosis.causes else "lead.not_in_kb", language)
    if diagnosis.verdict != "no_fault":
        return messages(f"lead.{diagnosis.verdict}", language)
    return messages(f"lead.{'healthy' if context.evidence.rows else 'healthy_config'}", language)


def _with_cause(
    cause: Cause, diagnosis: Diagnosis, context: Context, citations: Citations, *, brief: bool = False
) -> Iterator[Section]:
    language, case = citations.language, cause.case
    yield from _going_on(cause, diagnosis, citations)
    marker = citations.case(case)
    title = messages(f"lead.{diagnosis.verdict}", language, title=case.title.get(language), marker=f"[{marker}]")
    yield Section(kind="lead", body=title, markers=(marker,))
    if diagnosis.verdict == "no_fault":
        # "Nothing is wrong" rests on the log; how likely this explanation of it is would read as a doubt about that.
        grade = messages(f"grade.{case.evidence}", language)
        yield Section(kind="grade", body=messages("graded", language, grade=grade))
    else:
        yield Section(kind="confidence", body=_confidence(cause, language, answered=True))
    fired = [f for f in context.report.fired if f in cause.findings or f in diagnosis.related]
    fired.sort(key=lambda f: f not in cause.findings)
    fix = _headed("fix", _fix(case, fired, context, marker, language), language)
    if brief:
        yield from fix
        return
    # Markers are assigned in the order of the text.
    yield from _headed("cause", _cited("cause", case.section("cause", language), marker), language)
    yield from _headed("seen", _seen("seen", fired, citations), language)
    yield from fix
    yield from _headed("refuted", _refuted(case, marker, language), language)
    yield from _headed("confirm", _cited("confirm", case.section("confirm", language), marker), language)


def _going_on(cause: Cause, diagnosis: Diagnosis, citations: Citations) -> Sections:
    """The mechanism behind a cause on one line, unless the cause's title says as much."""
    belief = diagnosis.differential.belief(cause)
    if belief is None or belief.weighed.excluded_by or cause.case.level == "mechanism":
        return ()
    language, mechanism = citations.language, belief.weighed.mechanism
    title = mechanism.title.get(language)
    if repeats_title(title, cause.case.title.get(language)):
        return ()
    marker = citations.mechanism(mechanism)
    return _plain("mechanism", messages("going_on", language, title=title, marker=f"[{marker}]"), marker)


def repeats_title(title: str, other: str) -> bool:
    """Whether at least half of the words of a title (characters, in Chinese) are in another."""
    words, others = (set(text.casefold().split() if text.isascii() else text.casefold()) for text in (title, other))
    return len(words & others) * 2 >= len(words)


def _with_mechanism(
    belief: MechanismBelief, diagnosis: Diagnosis, context: Context, citations: Citations
) -> Iterator[Section]:
    """What is going on, and what it may come from."""
    language, mechanism = citations.language, belief.weighed.mechanism
    marker = citations.mechanism(mechanism)
    lead = messages("lead.mechanism", language, title=mechanism.title.get(language), marker=f"[{marker}]")
    yield Section(kind="lead", body=lead, markers=(marker,))
    yield from _headed("origins", _origins(belief, diagnosis, context, citations), language)
    yield from _headed("cause", _cited("cause", mechanism.section("cause", language), marker), language)
    yield from _headed("seen", _seen("seen", diagnosis.related, citations), language)
    yield from _headed("patch", _patch(diagnosis.related, language), language)
    yield from _headed("confirm", _cited("confirm", mechanism.section("confirm", language), marker), language)


def _origins(belief: MechanismBelief, diagnosis: Diagnosis, context: Context, citations: Citations) -> Sections:
    """The origins that are not ruled out, each with what speaks for it and the smallest change."""
    language, mechanism = citations.language, belief.weighed.mechanism
    origins = {origin_id(mechanism, origin): origin for origin in mechanism.origins}
    cases = {cause.case.id: cause.case for teller in belief.causes for cause in (teller, *teller.members)}
    items: list[str] = []
    markers: list[int] = []
    for node in Tree(diagnosis, context, language).mechanism(belief).nodes:
        if node.state == "does_not_hold" or len(items) == MAX_ORIGINS:
            continue
        known = cases.get(next((inner.id for inner in node.nodes), node.id))
        if node.id in origins:
            markers.append(citations.mechanism(mechanism, origins[node.id]))
            change = origins[node.id].fix.get(language)
        else:
            markers.append(citations.case(cases[node.id]))
            change = first_sentence(cases[node.id].section("fix", language))
        supports = node.supports or tuple(statement for inner in node.nodes for statement in inner.supports)
        item = f"**{node.title}** [{markers[-1]}]{_because(supports, language)}"
        item += messages("change", language, change=change)
        if known is not None and known.level == "case" and known.id != node.id:
            markers.append(citations.case(known))
            item += messages("known_case", language, title=known.title.get(language), marker=f"[{markers[-1]}]")
        items.append(item)
    body = "\n".join(f"{number}. {item}" for number, item in enumerate(items, start=1))
    return _list("origins", items, markers, body)


def _because(statements: Sequence[StatementView], language: str) -> str:
    """What speaks for a cause, as the end of its line."""
    texts = tuple(dict.fromkeys(statement.text for statement in statements))[:MAX_REASONS]
    return (
        messages("because", language, reasons=joined(texts, language)) if texts else "。" if language == "zh" else "."
    )


def first_sentence(markdown_text: str) -> str:
    """The beginning of a text without its marks: the first paragraph or list entry."""
    first = next((line for line in plain_text(markdown_text).splitlines() if line.strip()), "")
    return first.removeprefix("- ").strip()


def config_faults(diagnosis: Diagnosis, context: Context) -> tuple[Finding, ...]:
    """Faults found in a configuration that nobody complained about; they are what such an answer is about."""
    if diagnosis.verdict == "no_fault" or complaint(context):
        return ()
    if diagnosis.lead is not None and context.evidence.question.strip():
        return ()
    return tuple(f for f in diagnosis.findings if f.severity is not Severity.INFO and f.concludes == "fault")


def _config_faults(faults: Sequence[Finding], citations: Citations) -> Iterator[Section]:
    language = citations.language
    yield Section(kind="lead", body=messages("lead.config_faults", language, count=len(faults)))
    yield from _seen("problems", faults, citations)
    yield from _headed("patch", _patch(faults, language, len(faults)), language)


def _confidence(cause: Cause, language: str, *, answered: bool = False) -> str:
    grade = messages(f"grade.{cause.case.evidence}", language)
    if answered and cause.confidence == "low":
        return messages("not_sure", language, grade=grade)
    confidence = messages(f"confidence.{cause.confidence}", language)
    return messages("sure", language, confidence=confidence, grade=grade)


def _likely(cause: Cause | None, diagnosis: Diagnosis, context: Context, citations: Citations) -> Iterator[Section]:
    """The best candidate of an answer that asks back, what would repair it, and what would not help."""
    if cause is None:
        return
    language, case = citations.language, cause.case
    marker = citations.case(case)
    explained = _marked(case.section("cause", language), marker)
    body = f"**{case.title.get(language)}** [{marker}]\n\n{_confidence(cause, language)}\n\n{explained}"
    yield from _headed("likely", _plain("likely", body, marker), language)
    fired = [f for f in context.report.fired if f in cause.findings or f in diagnosis.related]
    yield from _headed("fix", _fix(case, fired, context, marker, language), language)
    yield from _headed("confirm", _cited("confirm", case.section("confirm", language), marker), language)
    yield from _headed("refuted", _refuted(case, marker, language), language)


def _refuted(case: Case, marker: int, language: str) -> Sections:
    colon = "：" if language == "zh" else ": "
    items = [f"{r.claim.get(language).rstrip('.。')}{colon}{r.why.get(language)} [{marker}]" for r in case.refutations]
    return _list("refuted", items, [marker])


def _marked(text: str, marker: int) -> str:
    """A text with its marker: after the last word, but never on the line that closes a code block."""
    text = text.rstrip()
    if not text:
        return ""
    return f"{text}\n\n[{marker}]" if text.endswith("```") else f"{text} [{marker}]"


def _fix(case: Case, fired: Sequence[Finding], context: Context, marker: int, language: str) -> Sections:
    text = _cited("fix", case.section("fix", language), marker)
    return (*text, *_names(case, context, language), *_patch(fired, language))


def _names(case: Case, context: Context, language: str) -> Sections:
    """The names of the recommended options in the user's framework, if it spells them differently."""
    framework, pairs = other_names(case, context.evidence)
    names = ", ".join(f"`{there}` → `{here}`" for there, here in pairs)
    return _plain("names", messages("names_here", language, framework=framework, names=names) if names else "")


def _patch(fired: Sequence[Finding], language: str, most: int = 1) -> Sections:
    """The first fixes that edit the user's own text: in words, then as a diff with what it clears when applied."""
    sections: list[Section] = []
    for view in (finding_view(finding, language) for finding in fired):
        if view.patch is None:
            continue
        note = messages("patch", language, clears=", ".join(view.clears)) if view.clears else ""
        note += messages("appears", language, appears=", ".join(view.appears)) if view.appears else ""
        fence = fence_around(view.patch)
        diff = f"{fence}diff\n{view.patch.rstrip()}\n{fence}\n{note}".rstrip()
        sections += (*_plain("change", view.fix), *_plain("diff", diff))
        most -= 1
        if most == 0:
            break
    return tuple(sections)


def _seen(kind: str, findings: Sequence[Finding], citations: Citations) -> Sections:
    language = citations.language
    lines, items, markers = [], [], []
    for finding in findings:
        markers.append(citations.rule(finding))
        items.append(f"{finding.message.get(language)} [{markers[-1]}]")
        lines.append(f"- {items[-1]}")
        for span in finding.evidence[:MAX_EVIDENCE]:
            where = place(span, language)
            if span.default:
                lines.append("  - " + messages("default", language, place=where))
            else:
                markers.append(citations.place(span))
                quoted = messages("at", language, place=where, text=quote(span).replace("`", "'"))
                lines.append(f"  - {quoted} [{markers[-1]}]")
    return _list(kind, items, markers, "\n".join(lines))


def _others(diagnosis: Diagnosis, context: Context, lead: Cause | None, citations: Citations) -> Sections:
    """The other causes; where the answer asks back, each with what speaks for it and its change.

    After a mechanism its own causes are listed already.
    """
    language, belief = citations.language, diagnosis.mechanism
    items, markers = [], []
    for cause in diagnosis.causes:
        if cause is lead or (belief is not None and cause in belief.causes):
            continue
        markers.append(citations.case(cause.case))
        confidence = messages(f"confidence.{cause.confidence}", language)
        item = f"{cause.case.title.get(language)} ({confidence}) [{markers[-1]}]"
        if diagnosis.verdict == "need_input":
            item += _because(tuple(Reasons(cause, context, language).supports()), language)
            item += messages("change", language, change=first_sentence(cause.case.section("fix", language)))
        items.append(item)
    return _headed("other", _list("other", items, markers), language)


def _asks(diagnosis: Diagnosis, language: str, *, headed: bool = False) -> Sections:
    views = [missing_view(item, language) for item in diagnosis.missing]
    items = [f"{view.ask} {view.why}" for view in views]
    body = "\n".join(f"{number}. {item}" for number, item in enumerate(items, start=1))
    asks = _list("ask", items, (), body)
    return asks if diagnosis.verdict == "need_input" and not headed else _headed("ask", asks, language)


def _listed(
    diagnosis: Diagnosis, context: Context, lead: Cause | None, citations: Citations, shown: Sequence[Finding] = ()
) -> Iterator[Section]:
    """The findings that no section before shows."""
    if lead is not None or diagnosis.mechanism is not None:
        shown = (*shown, *diagnosis.related, *(lead.findings if lead is not None else ()))
    related = [f for f in diagnosis.related if f not in shown]
    others = [f for f in context.report.fired if f not in shown and f not in related]
    yield from _headed("seen", _seen("seen", related, citations), citations.language)
    yield from _headed("listed", _seen("listed", others, citations), citations.language)


def _plain(kind: str, body: str, *markers: int) -> Sections:
    return (Section(kind=kind, body=body, markers=markers),) if body.strip() else ()


def _cited(kind: str, text: str, marker: int) -> Sections:
    return _plain(kind, _marked(text, marker), marker)


def _list(kind: str, items: Sequence[str], markers: Sequence[int], body: str = "") -> Sections:
    if not items:
        return ()
    body = body or "\n".join(f"- {item}" for item in items)
    return (Section(kind=kind, body=body, items=tuple(items), markers=tuple(dict.fromkeys(markers))),)


def _headed(name: str, sections: Sections, language: str) -> Sections:
    if not sections:
        return ()
    return (replace(sections[0], heading=messages(f"headings.{name}", language)), *sections[1:])


def fix_of(cause: Cause, diagnosis: Diagnosis, language: str) -> str:
    """What to change; for a mechanism what each origin that is left asks for, the likeliest first."""
    belief = diagnosis.differential.belief(cause) if cause.case.level == "mechanism" else None
    if belief is None:
        return cause.case.section("fix", language)
    colon = "：" if language == "zh" else ": "
    origins = [state.origin for state in belief.origins()]
    return "\n".join(f"- {origin.title.get(language)}{colon}{origin.fix.get(language)}" for origin in origins)


def cause_views(diagnosis: Diagnosis, language: str) -> tuple[CauseView, ...]:
    return tuple(
        CauseView(
            rank=rank,
            case_id=cause.case.id,
            title=cause.case.title.get(language),
            cause=plain_text(cause.case.section("cause", language)),
            fix=plain_text(fix_of(cause, diagnosis, language)),
            confidence=cause.confidence,
            score=round(cause.probability, 4),
            evidence_grade=cause.case.evidence,
            cases=(cause.case.id, *cause.case.related),
            findings=tuple(sorted({f.rule_id for f in cause.findings if f.status is Status.FIRED})),
            refutations=tuple(
                RefutationView(claim=r.claim.get(language), why=r.why.get(language)) for r in cause.case.refutations
            ),
            why=tuple(name for name, value in cause.features.items() if value > 0),
            level=cause.case.level,
            mechanism=_mechanism_of(cause, diagnosis, language),
        )
        for rank, cause in enumerate(diagnosis.causes, start=1)
    )


def _mechanism_of(cause: Cause, diagnosis: Diagnosis, language: str) -> MechanismRef | None:
    belief = diagnosis.differential.belief(cause)
    if belief is None:
        return None
    return MechanismRef(id=belief.id, title=belief.weighed.mechanism.title.get(language))


def place(span: Span, language: str) -> str:
    """``train.sh:12:3``, or the question's own name."""
    name = shown_name(span.attachment) if span.attachment is not None else messages("question", language)
    return f"{name}:{span.line}:{span.column}"


def shown_name(name: str) -> str:
    """The name of a pasted text, safe in Markdown: unusual names become code without brackets.

    The user chooses this name and every answer shows it: it must not look like a citation, a link or a tag.
    """
    if _ORDINARY.fullmatch(name) and not name.lower().startswith("www."):
        return name
    return f"`{' '.join(name.translate(_BRACKETS).split())}`"


def quote(span: Span) -> str:
    """The pasted text on one line, shortened."""
    return _line(span.text)


def harmless(text: str) -> str:
    """Somebody else's text on one line, shortened, without what Markdown would take for a link, a tag or a citation."""
    return _line(text.translate(_BRACKETS)).replace("*", "∗")


def _line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MAX_QUOTE else text[: MAX_QUOTE - 1] + "…"


def plain_text(markdown: str) -> str:
    """Markdown without its marks; links keep their text."""
    return _MARKS.sub("", _LINK.sub(r"\1", markdown)).strip()
