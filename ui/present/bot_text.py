"""An answer as Markdown messages for chat platforms without blocks of their own. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote as percent

from trainmedic.service.answer.schema import Answer
from trainmedic.ui.present.messages import messages
from trainmedic.ui.present.slack import folded, leads_with, receipt_lines, text_of, verdict_line
from trainmedic.ui.present.slack_text import split_markdown


@dataclass(frozen=True, slots=True, kw_only=True)
class BotExtras:
    """``public_url``: the address of the web pages, if public. ``not_read``: skipped files with the reason."""

    public_url: str = ""
    not_read: tuple[str, ...] = ()


def pages(answer: Answer, extras: BotExtras, limit: int) -> list[str]:
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


def _remarks(answer: Answer, extras: BotExtras) -> list[str]:
    """What was not read, secrets, notices, and the link to the whole answer."""
    language = answer.language
    lines = [not_read_line(extras.not_read, language)] if extras.not_read else []
    secrets = [item.kind for item in answer.receipt.masked if item.kind != "email"]
    if secrets:
        joiner = "、" if language == "zh" else ", "
        lines.append(messages("bots.secret", language, kinds=joiner.join(secrets)))
    lines += answer.notices
    if extras.public_url:
        lines.append(f"[{messages('bots.open', language)}]({extras.public_url}/?answer={percent(answer.id)})")
    return lines


def _lines(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def not_read_line(names: Sequence[str], language: str) -> str:
    return messages("bots.not_read", language, names=("、" if language == "zh" else ", ").join(names))
