"""Answers to questions about an answer: whether another cause was considered, and where an edit belongs. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from trainmedic.kb.fences import fence_around
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.report import Finding, Fix
from trainmedic.service.answer.citations import Citations, code, place
from trainmedic.service.answer.differential import Reasons
from trainmedic.service.answer.messages import messages
from trainmedic.service.answer.schema import Section
from trainmedic.service.answer.text import split
from trainmedic.service.answer.views import joined
from trainmedic.service.dialogue.change import setting_called
from trainmedic.service.dialogue.vocabulary import phrases
from trainmedic.service.pipeline import Draft
from trainmedic.service.ranking.fix_values import fix_values
from trainmedic.service.ranking.inference import Cause

MAX_REASONS = 3
MAX_OTHERS = 4
FIX_WORDS = 36
_IDENTIFIER = regex(r"[A-Za-z]\w*_\w+(?:\.\w+)*|--[A-Za-z][\w-]+")
_FRAME = regex(r"(?P<file>[^/\\:]+):(?P<line>\d+)")
Sections = tuple[Section, ...]


def named_settings(draft: Draft) -> tuple[frozenset[str], frozenset[str]]:
    """The settings, and the other concepts of the glossary, that the message itself names."""
    text, run = draft.request.question, draft.context.evidence.run
    settings = {setting_called(name, run) for name in _IDENTIFIER.findall(text)}
    glossary = draft.knowledge.glossary
    concepts = frozenset(glossary.ids(text))
    named = (glossary.concepts[concept] for concept in concepts)
    settings |= {setting for concept in named if concept.kind == "setting" for setting in concept.settings}
    return frozenset(settings), concepts


def alternative(draft: Draft, citations: Citations) -> Sections:
    """The evidence for and against the cause that the message names; an honest line if there is none."""
    language = citations.language
    if phrases("asks_others").search(draft.request.question):
        return _others(draft, citations)
    settings, concepts = named_settings(draft)
    findings = [finding for finding in draft.context.report.fired if _is_about(finding, settings, draft)]
    items = [
        messages("asked.finding", language, text=finding.message.get(language), marker=f"[{citations.rule(finding)}]")
        for finding in findings[:MAX_REASONS]
    ]
    cause = next(_causes_about(settings, concepts, draft), None)
    if cause is None and not items:
        return (Section(kind="reply", body=messages("asked.not_considered", language)),)
    head = messages("asked.not_excluded", language)
    if cause is not None:
        marker, first = citations.case(cause.case), draft.diagnosis.causes[:1]
        name = "first" if first and cause.case.id == first[0].case.id else "considered"
        belief = draft.diagnosis.mechanism
        about = not settings.isdisjoint(cause.case.settings)
        if about and belief is not None and any(cause is each or cause in each.members for each in belief.causes):
            name = "origin"
        head = messages(
            f"asked.{name}",
            language,
            title=cause.case.title.get(language),
            marker=f"[{marker}]",
            confidence=messages(f"confidence.{cause.confidence}", language),
        )
        reasons = Reasons(cause, draft.context, language)
        for name, statements in (("for", reasons.supports()), ("against", reasons.contradicts())):
            texts = [statement.text for statement in islice(statements, MAX_REASONS)]
            none = messages("asked.nothing", language)
            items.append(messages(f"asked.{name}", language, reasons=joined(texts, language) or none))
    body = "\n".join((head, "", *(f"- {item}" for item in dict.fromkeys(items))))
    return (Section(kind="reply", body=body, items=tuple(dict.fromkeys(items))),)


def _others(draft: Draft, citations: Citations) -> Sections:
    """The causes after the first."""
    language, others = citations.language, draft.diagnosis.differential.causes[: MAX_OTHERS + 1]
    first = draft.diagnosis.causes[:1]
    items, markers = [], []
    for cause in [cause for cause in others if cause.case.id not in {each.case.id for each in first}][:MAX_OTHERS]:
        markers.append(citations.case(cause.case))
        confidence, title = messages(f"confidence.{cause.confidence}", language), cause.case.title.get(language)
        items.append(messages("candidate", language, title=title, confidence=confidence, marker=f"[{markers[-1]}]"))
    if not items:
        return (Section(kind="reply", body=messages("asked.not_considered", language)),)
    head = messages("headings.other", language)
    body = "\n".join((f"**{head}**", "", *(f"- {item}" for item in items)))
    return (Section(kind="reply", body=body, items=tuple(items), markers=tuple(markers)),)


def _causes_about(settings: frozenset[str], concepts: frozenset[str], draft: Draft) -> Iterator[Cause]:
    """The considered causes about what was named, those about the very setting first."""
    run = draft.context.evidence.run
    causes = [cause for cause in draft.diagnosis.differential.causes if not cause.features["framework_clash"]]
    for cause in causes:
        written = {setting_called(name, run) for name, _ in fix_values(cause.case)}
        if not settings.isdisjoint((*cause.case.settings, *written)):
            yield cause
    for names in (draft.context.case_titles, draft.context.case_concepts):
        yield from (cause for cause in causes if not concepts.isdisjoint(names.get(cause.case.id, ())))


def _is_about(finding: Finding, settings: frozenset[str], draft: Draft) -> bool:
    """Whether a finding rests on one of the settings."""
    run = draft.context.evidence.run.settings
    places = [setting.option.span for name in settings if (setting := run.get(name)) and setting.option is not None]
    return any(span in places for span in finding.evidence)


def releases(draft: Draft, citations: Citations) -> Sections:
    """The releases that the first cause concerns, and what its checks found; empty if the cause names none and none
    found anything."""
    language, first = citations.language, next(iter(draft.diagnosis.causes), None)
    if first is None:
        return ()
    items = [
        messages("asked.finding", language, text=finding.message.get(language), marker=f"[{citations.rule(finding)}]")
        for finding in draft.context.report.fired
        if finding in first.findings
    ][:MAX_REASONS]
    versions = draft.context.evidence.versions
    for name, ranges in (("affected", first.case.affected), ("fixed", first.case.fixed)):
        own = [package for package in ranges if package in versions] or list(ranges)
        items += [messages(f"asked.{name}", language, package=each, releases=code(ranges[each])) for each in own]
    if not items:
        return ()
    marker = citations.case(first.case)
    head = messages("asked.releases", language, title=first.case.title.get(language), marker=f"[{marker}]")
    body = "\n".join((head, "", *(f"- {item}" for item in items)))
    return (Section(kind="reply", body=body, items=tuple(items), markers=(marker,)),)


def where(draft: Draft, citations: Citations) -> Sections:
    """The file and the line in which an edit belongs, with the edit."""
    language = citations.language
    settings, _ = named_settings(draft)
    run = draft.context.evidence.run
    named = set(_IDENTIFIER.findall(draft.request.question))
    if (written := next((option for option in run.options if option.key in named), None)) is not None:
        return _at("asked.where_beside", written.span, citations, change="")
    if (told := draft.instruction) is not None:
        written = next((option for option in run.options if option.key == told.name), run.options[-1])
        return _at("asked.where", written.span, citations, rest=_fenced(told.effects.patch) if told.effects else "")
    fixed = _edited(draft, settings)
    if fixed is not None:
        span = fixed.edits[0].span
        return _at("asked.where", span, citations, rest=_fenced(fixed.patch or ""))
    case = next((cause.case for cause in draft.diagnosis.causes), None)
    change = split(case.section("fix", language), FIX_WORDS)[0] if case is not None else ""
    names = [*settings, *((*case.settings, *(setting_called(n, run) for n, _ in fix_values(case))) if case else ())]
    proposal = draft.proposal
    patch = proposal.effects.patch if proposal is not None and case is not None and proposal.case == case.id else ""
    for name in names:
        setting = run.settings.get(name)
        if setting is not None and setting.option is not None and setting.option in run.options:
            if patch:
                return _at("asked.where", setting.option.span, citations, rest=_fenced(_changed_lines(patch)))
            return _at("asked.where_beside", setting.option.span, citations, change=change)
    if (frame := _own_frame(draft)) is not None:
        body = messages("asked.where_frame", language, place=code(frame), change=change)
        return (Section(kind="reply", body=body),)
    if run.options:
        return _at("asked.where_file", run.options[-1].span, citations, change=change)
    return (Section(kind="reply", body=messages("asked.where_unknown", language, change=change)),)


def _changed_lines(patch: str) -> str:
    """The lines of a patch that it changes."""
    lines = (line for line in patch.split("\n") if line[:1] in ("+", "-") and line[:4] not in ("+++ ", "--- "))
    return "\n".join(lines)


def _fenced(patch: str) -> str:
    patch, fence = patch.rstrip("\n"), fence_around(patch)
    return f"\n\n{fence}diff\n{patch}\n{fence}" if patch else ""


def _at(name: str, span: Span, citations: Citations, **values: str) -> Sections:
    marker = citations.place(span)
    where = f"{place(span, citations.language)} [{marker}]"
    rest = values.pop("rest", "")
    quoted = code(" ".join(span.text.split())[:80]) if span.text.strip() else ""
    body = messages(name, citations.language, place=where, quoted=quoted, **values).replace("  ", " ") + rest
    return (Section(kind="reply", body=body, markers=(marker,)),)


def _edited(draft: Draft, settings: frozenset[str]) -> Fix | None:
    """The fix of the answer that edits the user's own text."""
    diagnosis = draft.diagnosis
    lead = diagnosis.lead or diagnosis.likely
    proofs = [f for f in draft.context.report.fired if lead is not None and f in lead.findings]
    findings = [*proofs, *diagnosis.related, *(diagnosis.findings if lead is None else ())]
    if settings:
        findings = [finding for finding in findings if _is_about(finding, settings, draft)]
    return next((fix for finding in findings for fix in finding.fixes if fix.edits), None)


def _own_frame(draft: Draft) -> str | None:
    """The innermost line of the user's own file in a traceback."""
    evidence = draft.context.evidence
    files = {(source.name or "").rpartition("/")[2] for source in evidence.sources}
    for trace in evidence.tracebacks:
        for frame in reversed(trace.frames):
            match = _FRAME.search(frame)
            if match is not None and match["file"] in files:
                return f"{match['file']}:{match['line']}"
    return None
