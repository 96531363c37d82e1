"""An answer as Markdown messages for chat platforms without blocks of their own. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from trainmedic.service.answer.schema import Answer
from trainmedic.ui.present.messages import messages
from trainmedic.ui.present.slack import (
    Extras,
    address,
    folded,
    leads_with,
    notes_of,
    receipt_lines,
    text_of,
    verdict_line,
)
from trainmedic.ui.present.slack_text import split_markdown


def pages(answer: Answer, extras: Extras, limit: int) -> list[str]:
    """The answer in messages of at most ``limit`` characters: what leads comes first, alone in its message.

    The details follow in further messages, unless they are a link away.
    """
    head = "\n\n".join(part for part in (verdict_line(answer), text_of(answer, short=True)) if part)
    lead = "\n\n".join(
        part for part in (head, _lines([*_sources(answer, cited=True), *_remarks(answer, extras)])) if part
    )
    if extras.public_url:
        return split_markdown(lead, limit)
    rest = _lines([*_sources(answer, cited=False), *receipt_lines(answer)])
    details = "\n\n".join(part for part in (folded(answer), rest) if part)
    return [*split_markdown(lead, limit), *(split_markdown(details, limit) if details else ())]


def _sources(answer: Answer, *, cited: bool) -> list[str]:
    """The sources that the leading text has ``cited``, or the others."""
    return [
        f"[{item.marker}] " + (f"[{item.title}]({item.url})" if item.url else item.title)
        for item in answer.citations
        if leads_with(answer, item.marker) is cited
    ]


def _remarks(answer: Answer, extras: Extras) -> list[str]:
    """`notes_of`, and the link to the whole answer."""
    opened = f"[{messages('channels.open', answer.language)}]({address(answer, extras)})"
    return [*notes_of(answer, extras), *([opened] if extras.public_url else [])]


def _lines(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
