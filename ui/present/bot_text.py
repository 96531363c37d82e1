"""An answer as Markdown messages for chat platforms without blocks of their own. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote as percent

from trainmedic.service.answer import Answer
from trainmedic.ui.present.messages import messages
from trainmedic.ui.present.slack import receipt_lines, text_of, verdict_line
from trainmedic.ui.present.slack_text import split_markdown

FEISHU_CHARACTERS = 7_000
"""A card may have 30 KB; a Chinese character takes three bytes."""
DINGTALK_CHARACTERS = 5_500
"""A message may have 20,000 bytes."""
TITLE = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class BotExtras:
    """``public_url``: the address of the web pages, if public. ``not_read``: skipped files with the reason."""

    public_url: str = ""
    not_read: tuple[str, ...] = ()


def feishu_card(markdown: str) -> dict[str, Any]:
    """A card with one Markdown text, in the card format 2.0, which knows code blocks and headings."""
    # Without mentions: `<at id=all>` in a pasted text would notify a whole group.
    inert = markdown.replace("<at", "<\u200bat").replace("<person", "<\u200bperson")
    return {
        "schema": "2.0",
        "config": {"update_multi": True},
        "body": {"elements": [{"tag": "markdown", "content": inert}]},
    }


def dingtalk_message(markdown: str) -> dict[str, Any]:
    """A Markdown message; its title is shown in notifications only."""
    first = next((line.strip("#>*-` ") for line in markdown.splitlines() if line.strip("#>*-` ")), "trainmedic")
    return {"msgtype": "markdown", "markdown": {"title": first.replace("*", "")[:TITLE], "text": markdown}}


def pages(answer: Answer, extras: BotExtras, limit: int) -> list[str]:
    """The whole answer in messages of at most ``limit`` characters."""
    body = "\n\n".join(part for part in (verdict_line(answer), text_of(answer), footer(answer, extras)) if part)
    return split_markdown(body, limit)


def footer(answer: Answer, extras: BotExtras) -> str:
    """Sources, what was read and what not, and the link to the answer's page."""
    language = answer.language
    joiner = "、" if language == "zh" else ", "
    lines = [
        f"[{item.marker}] " + (f"[{item.title}]({item.url})" if item.url else item.title) for item in answer.citations
    ]
    lines += receipt_lines(answer)
    if extras.not_read:
        lines.append(not_read_line(extras.not_read, language))
    secrets = [item.kind for item in answer.receipt.masked if item.kind != "email"]
    if secrets:
        lines.append(messages("bots.secret", language, kinds=joiner.join(secrets)))
    lines += answer.notices
    if extras.public_url:
        lines.append(f"[{messages('bots.open', language)}]({extras.public_url}/?answer={percent(answer.id)})")
    return "\n".join(f"- {line}" for line in lines)


def not_read_line(names: Sequence[str], language: str) -> str:
    return messages("bots.not_read", language, names=("、" if language == "zh" else ", ").join(names))
