"""An answer as Slack messages: Block Kit blocks within Slack's limits. Pure.

Limits from Slack's Block Kit reference: 50 blocks a message, 12,000 characters over all Markdown blocks, 2,000 a
button's value. Slack refuses messages somewhat above 13,000 characters in all (bolt-js issue 2509), so a message is
filled up to `MESSAGE` and continued in the next one. Nothing is cut.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote as percent

from trainmedic.service.answer.messages import messages as answer_messages
from trainmedic.service.answer.schema import Answer
from trainmedic.service.answer.schema import markdown as markdown_of
from trainmedic.ui.present.messages import messages
from trainmedic.ui.present.slack_text import escape, fallback, inert, link, split_markdown, wrapped
from trainmedic.ui.present.verdict import shown_verdict

Block = dict[str, Any]
MESSAGE = 11_500
"""Characters of one message, all blocks together."""
BODY = 11_000
"""Characters of one Markdown block, leaving room for the fences that a split adds."""
BLOCKS = 45
ELEMENT = 1_000
"""Characters of one line of small print; a longer line continues in the next element."""
ELEMENTS = 10
CONSIDERED = 4
"""Lines on what else was considered."""
FEEDBACK, RESOLVED = "trainmedic_feedback", "trainmedic_resolved"
"""Action ids of the buttons."""
GROUNDED = ("answered", "no_fault")
"""Verdicts that rest on a case or on a clean check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One message: blocks, and the text for notifications and screen readers."""

    text: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """Everything in a message besides the answer.

    ``public_url`` is the address of the web pages, if public. ``not_read`` names skipped files with the reason.
    ``beside`` are blocks between answer and small print.
    """

    public_url: str = ""
    not_read: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    beside: tuple[Block, ...] = ()


def render_answer(answer: Answer, extras: Extras = Extras()) -> tuple[Reply, ...]:
    """The answer with small print and buttons in the first message; the details in further ones of the thread."""
    body = f"{verdict_line(answer)}\n\n{text_of(answer, short=True)}"
    blocks = [markdown(piece) for piece in split_markdown(inert(body), BODY)]
    return (*packed([*blocks, *footer(answer, extras)], fallback(body)), *further(answer, extras))


def footer(answer: Answer, extras: Extras) -> list[Block]:
    rest = [] if folded(answer) else [*also_considered(answer), *small_print(sources(answer, extras, cited=False))]
    return [
        *extras.beside,
        *small_print(sources(answer, extras, cited=True)),
        *rest,
        *small_print(remarks(answer, extras)),
        *buttons(answer),
    ]


def further(answer: Answer, extras: Extras) -> tuple[Reply, ...]:
    """The details; none where they are a link away."""
    text = folded(answer)
    if extras.public_url or not text:
        return ()
    blocks = [markdown(piece) for piece in split_markdown(inert(text), BODY)]
    return packed(
        [*blocks, *also_considered(answer), *small_print(sources(answer, extras, cited=False))], fallback(text)
    )


def also_considered(answer: Answer) -> list[Block]:
    """The causes considered besides the answer's, and those ruled out, in one section."""
    language = answer.language
    listed = {cause.case_id for cause in answer.causes}
    listed |= {cause.mechanism.id for cause in answer.causes if cause.mechanism is not None}
    lines = [f"{node.title} ({node.probability:.0%})" for node in answer.differential.nodes if node.id not in listed]
    lines += [
        messages("slack.excluded", language, title=item.title, why=item.excluded_by[0].text)
        for item in answer.differential.excluded
    ]
    if not lines:
        return []
    head = messages("slack.also", language)
    return [section("\n".join((head, *(f"• {escape(line)}" for line in lines[:CONSIDERED]))))]


def packed(blocks: Sequence[Block], text: str) -> tuple[Reply, ...]:
    """The blocks in as few messages as Slack's limits allow, in order. Buttons stay with the block before them."""
    groups: list[list[Block]] = [[]]
    room = MESSAGE
    for block in blocks:
        size = weight(block)
        # Buttons never begin a message: alone they would have no answer above them.
        if groups[-1] and (size > room or len(groups[-1]) >= BLOCKS) and not is_button(block):
            groups.append([])
            room = MESSAGE
        groups[-1].append(block)
        room -= size
    return tuple(Reply(text=text, blocks=tuple(group)) for group in groups)


def verdict_line(answer: Answer) -> str:
    """``🔎 Cause found · confidence: high · evidence: reproduced``, in Markdown."""
    language = answer.language
    parts = [f"**{verdict_name(answer)}**"]
    if answer.verdict in GROUNDED and answer.causes:
        first = answer.causes[0]
        confidence = answer_messages(f"confidence.{first.confidence}", language)
        grade = answer_messages(f"grade.{first.evidence_grade}", language)
        parts.append(messages("slack.confidence", language, confidence=confidence))
        parts.append(messages("slack.evidence", language, grade=grade))
    return " · ".join(parts)


def verdict_name(answer: Answer) -> str:
    return messages(f"slack.verdict.{shown_verdict(answer)}", answer.language)


def lead(answer: Answer) -> str:
    """The part that is certain before a text is written: the verdict and the first cause, in Markdown."""
    causes = answer.causes
    title = f"\n\n**{causes[0].title}**" if causes and answer.verdict in GROUNDED else ""
    return inert(f"{verdict_line(answer)}{title}\n\n")


def text_of(answer: Answer, *, short: bool = False) -> str:
    """The answer's Markdown without the receipt and the confidence, which this channel shows elsewhere.

    ``short``: without the details that are folded elsewhere.
    """
    return markdown_of(
        section
        for section in answer.sections
        if section.kind not in ("receipt", "confidence") and not (short and section.folded)
    )


def folded(answer: Answer) -> str:
    """The Markdown of the details."""
    return markdown_of(section for section in answer.sections if section.folded)


def leads_with(answer: Answer, marker: int) -> bool:
    """Whether the text without the details cites a source."""
    return f"[{marker}]" in text_of(answer, short=True)


def receipt_lines(answer: Answer) -> list[str]:
    lines = (line for section in answer.sections if section.kind == "receipt" for line in section.items)
    return [line.replace("`", "") for line in lines]


def sources(answer: Answer, extras: Extras, *, cited: bool) -> list[str]:
    """One line of mrkdwn for each source that the leading text has ``cited``, or for each other one."""
    lines = []
    for item in (item for item in answer.citations if leads_with(answer, item.marker) is cited):
        url = item.url
        if item.kind == "case" and extras.public_url:
            url = f"{extras.public_url}/knowledge/?case={percent(item.id)}"
        shown = link(url, item.title) if url else escape(item.title)
        name = "" if item.kind == "input" else f" ({escape(item.id)})"
        lines.append(f"[{item.marker}] {shown}{name}")
    return lines


def notes_of(answer: Answer, extras: Extras) -> list[str]:
    """Skipped files, notes, secrets and notices, as plain lines."""
    language = answer.language
    lines = [not_read_line(extras.not_read, language)] if extras.not_read else []
    lines += extras.notes
    secrets = [item.kind for item in answer.receipt.masked if item.kind != "email"]
    if secrets:
        lines.append(messages("channels.secret", language, kinds=_joined(secrets, language)))
    return [*lines, *answer.notices]


def not_read_line(names: Sequence[str], language: str) -> str:
    return messages("channels.not_read", language, names=_joined(names, language))


def _joined(names: Sequence[str], language: str) -> str:
    return ("、" if language == "zh" else ", ").join(names)


def remarks(answer: Answer, extras: Extras) -> list[str]:
    """Receipt, `notes_of`, model and link, as lines of mrkdwn."""
    lines = [escape(line).replace("`", "") for line in (*receipt_lines(answer), *notes_of(answer, extras))]
    if answer.mode == "llm":
        lines.append(escape(messages("slack.written_by", answer.language, model=answer.model or "?")))
    if extras.public_url:
        lines.append(link(address(answer, extras), messages("channels.open", answer.language)))
    return lines


def address(answer: Answer, extras: Extras) -> str:
    """Of the answer's page."""
    return f"{extras.public_url}/?answer={percent(answer.id)}"


def small_print(lines: Sequence[str]) -> list[Block]:
    elements = [{"type": "mrkdwn", "text": part} for line in lines for part in wrapped(line, ELEMENT)]
    return [
        {"type": "context", "elements": elements[start : start + ELEMENTS]}
        for start in range(0, len(elements), ELEMENTS)
    ]


def buttons(answer: Answer) -> list[Block]:
    up, down, resolved = (
        {
            "text": {"type": "plain_text", "text": messages(f"slack.buttons.{reaction}", answer.language)},
            "value": json.dumps({"answer": answer.id, "language": answer.language, "reaction": reaction}),
            "accessibility_label": messages(f"slack.buttons.{reaction}", answer.language),
        }
        for reaction in ("up", "down", "resolved")
    )
    thumbs = {"type": "feedback_buttons", "action_id": FEEDBACK, "positive_button": up, "negative_button": down}
    return [
        {"type": "context_actions", "elements": [thumbs]},
        {"type": "actions", "elements": [{"type": "button", "action_id": RESOLVED, **resolved}]},
    ]


def markdown(text: str) -> Block:
    return {"type": "markdown", "text": text}


def section(text: str) -> Block:
    """A block of mrkdwn; ``text`` is escaped already."""
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}, "expand": True}


def short_reply(text: str) -> Reply:
    """A short message of our own; ``text`` is escaped already."""
    return Reply(text=text, blocks=(section(text),))


def is_button(block: Block) -> bool:
    return block["type"] in ("actions", "context_actions")


def weight(block: Block) -> int:
    """Characters that count against the limits. `MESSAGE` leaves room for the buttons."""
    if is_button(block):
        return 0
    if block["type"] == "context":
        return sum(len(element["text"]) for element in block["elements"])
    text = block["text"]
    return len(text if isinstance(text, str) else text["text"])
