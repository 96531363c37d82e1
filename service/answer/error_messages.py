"""Explanations of the error messages in the pasted text: for the wire, and as a section of the answer. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trainmedic.kb.error_messages.explain import MessageMatch, explain
from trainmedic.kb.error_messages.tables import LOGGED
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.projection import project
from trainmedic.service.answer.citations import Citations, code, place, quote
from trainmedic.service.answer.messages import messages
from trainmedic.service.answer.schema import (
    AdviceView,
    ConditionValueView,
    MessagePlaceView,
    MessagesView,
    MessageView,
    Section,
)
from trainmedic.service.answer.views import receipt_view

MOST_SHOWN = 3
"""Messages in the answer's text; the others are only in its fields."""


def message_view(match: MessageMatch, language: str) -> MessageView:
    entry, where = match.entry, match.place
    return project(
        MessageView,
        match,
        language,
        package=entry.package,
        kind=entry.kind,
        template=entry.template,
        evidence=match.span,
        place=project(MessagePlaceView, where, release=entry.last, url=match.url),
        condition=where.condition,
        values=tuple(project(ConditionValueView, item, evidence=item.span) for item in match.conditions),
        text=explanation(match, language),
        first_release=entry.first,
        last_release=entry.last,
        others=tuple(dict.fromkeys(other.package for other in match.others if other.package != entry.package)),
        whole=match.is_whole,
    )


def explained(evidence: Evidence, language: str) -> MessagesView:
    """The messages in the evidence, explained, without a diagnosis."""
    views = tuple(message_view(match, language) for match in explain(evidence))
    return MessagesView(messages=views, receipt=receipt_view(evidence.receipt))


def explanation(match: MessageMatch, language: str) -> str:
    """Which code prints the message and under which condition, and which releases have it."""
    entry, where = match.entry, match.place
    name = "logged" if entry.kind in LOGGED else "raised"
    condition = where.condition
    if condition.startswith("except "):
        name, condition = f"{name}_after", condition.removeprefix("except ")
    elif not condition:
        name = f"{name}_always"
    function = code(f"{where.function}()" if where.function else where.file.rpartition("/")[2])
    text = messages(
        f"message.{name}",
        language,
        package=entry.package,
        exception=code(entry.exception or entry.kind),
        function=function,
        condition=code(condition) if condition else "",
    )
    joiner = "、" if language == "zh" else ", "
    if match.conditions:
        values = joiner.join(_value(match, number, language) for number in range(len(match.conditions)))
        text += messages("message.values", language, values=values)
    text += messages("message.end", language)
    since = "since" if entry.is_newest else "only" if entry.first == entry.last else "between"
    text += messages(f"message.{since}", language, first=entry.first, last=entry.last)
    if match.version is not None and match.in_version is False:
        text += messages("message.other_version", language, package=entry.package, version=match.version)
    if not match.is_whole:
        text += messages("message.part", language)
    return text


def _value(match: MessageMatch, number: int, language: str) -> str:
    item = match.conditions[number]
    if item.span is None:
        return messages("message.printed", language, name=code(item.name), value=code(item.value))
    return messages(
        "message.option", language, name=code(item.name), value=code(item.value), place=place(item.span, language)
    )


def messages_section(
    matches: Sequence[MessageMatch], cases: Mapping[str, Case], citations: Citations, language: str
) -> tuple[Section, ...]:
    """A section on the first messages: exceptions, and whatever advice exists on."""
    shown = [match for match in matches if match.advice is not None or match.entry.kind not in LOGGED][:MOST_SHOWN]
    if not shown:
        return ()
    lines, items, markers = [], [], []
    for match in shown:
        view = message_view(match, language)
        markers.append(citations.place(match.span))
        items.append(f"{code(quote(match.span))} [{markers[-1]}]")
        lines.append(f"- {items[-1]}\n\n  {_with_link(view, language)}")
        if view.advice is not None:
            lines += [f"\n  {paragraph}" for paragraph in _advice(view.advice, cases, citations, markers, language)]
    heading = messages("headings.message", language)
    body = "\n".join(lines)
    return (Section(kind="message", heading=heading, body=body, items=tuple(items), markers=tuple(markers)),)


def _with_link(view: MessageView, language: str) -> str:
    where = f"{view.place.file}:{view.place.line}"
    link = f"[{where}]({view.place.url})" if view.place.url else code(where)
    return f"{view.text} {messages('message.place', language, place=link, release=view.place.release)}"


def _advice(
    advice: AdviceView, cases: Mapping[str, Case], citations: Citations, markers: list[int], language: str
) -> list[str]:
    parts = [advice.meaning]
    parts += [messages("message.change", language, text=advice.change)] if advice.change else []
    parts += [messages("message.no_help", language, text=advice.no_help)] if advice.no_help else []
    for case in (cases[case_id] for case_id in advice.cases if case_id in cases):
        markers.append(citations.case(case))
        parts.append(messages("message.case", language, title=case.title.get(language), marker=f"[{markers[-1]}]"))
    return [part for part in parts if part]
