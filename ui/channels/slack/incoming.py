"""The text of a Slack message as its author typed it. Pure.

Slack's ``text`` is escaped and altered (addresses in angle brackets, emoji as names); the ``blocks`` of a message keep
the original with code blocks apart, so pasted configs are read from there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from trainmedic.kb.fences import fence_around
from trainmedic.kb.lazy import regex
from trainmedic.ui.channels.channel import File, Json, as_maps

KEPT_SUBTYPES = frozenset({None, "", "file_share", "thread_broadcast"})
"""Kinds of message with content of their own. Others are edits, deletions, joins and the like."""
_LINK = regex(r"<(?P<url>(?:https?|ftp|mailto):[^|>]*)(?:\|(?P<label>[^>]*))?>")
_REFERENCE = regex(r"<(?P<kind>[@#!])(?P<id>[^|>]*)(?:\|(?P<label>[^>]*))?>")
# Slack's fence may open and close in the middle of a line; Markdown's stands alone on one.
_MRKDWN_FENCE = regex(r"```(?!\n)(?P<code>[^`]+?)(?<!\n)```")


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingMessage:
    """One message. ``bot``: from any app; ``ours``: from our own app."""

    ts: str
    user: str
    text: str
    files: tuple[File, ...] = ()
    bot: bool = False
    ours: bool = False


def incoming_message(message: Json, bot_user: str, bot_id: str) -> IncomingMessage:
    """A message of an event, thread or shortcut, without our own mention in its text."""
    ours = message.get("user") == bot_user or (bool(bot_id) and message.get("bot_id") == bot_id)
    return IncomingMessage(
        ts=str(message.get("ts", "")),
        user=str(message.get("user") or message.get("bot_id") or ""),
        text=text_of(message, bot_user),
        files=tuple(map(_file, as_maps(message.get("files")))),
        bot=bool(message.get("bot_id")) or message.get("subtype") == "bot_message",
        ours=ours,
    )


def text_of(message: Json, bot_user: str) -> str:
    """The typed text, from rich text if present; then the text of an app's attachments."""
    rich = [block for block in message.get("blocks") or () if _is(block, "rich_text")]
    if rich:
        text = "\n".join(_rich(block, bot_user) for block in rich)
    else:
        text = unescaped(str(message.get("text") or ""), bot_user)
        text = text or "\n".join(_section(block, bot_user) for block in message.get("blocks") or ())
    attached = [_attached(item, bot_user) for item in message.get("attachments") or () if isinstance(item, Mapping)]
    return "\n".join(part for part in (text.strip(), *attached) if part)


def unescaped(text: str, bot_user: str = "") -> str:
    """Slack's ``text`` as typed: no mention of us, bare addresses, other mentions by name."""

    def named(match: re.Match[str]) -> str:
        if match["kind"] == "@" and match["id"] == bot_user:
            return ""
        return match["kind"].replace("!", "@") + (match["label"] or match["id"])

    text = _REFERENCE.sub(named, text)  # before unescaping: a typed "<@U1>" arrives escaped and is not a mention
    text = _LINK.sub(lambda match: _address(match["url"], match["label"]), text)
    # `&amp;` last, so that a typed `&lt;` (escaped as `&amp;lt;`) stays one.
    text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return _MRKDWN_FENCE.sub(lambda match: f"```\n{match['code']}\n```", text).strip()


def mentions(message: Json, bot_user: str) -> bool:
    return f"<@{bot_user}>" in str(message.get("text") or "") or f"<@{bot_user}|" in str(message.get("text") or "")


def is_written(message: Json) -> bool:
    """Whether this is a new message: not an edit, a deletion or a join."""
    return not message.get("hidden") and message.get("subtype") in KEPT_SUBTYPES


def _address(url: str, label: str | None) -> str:
    if url.startswith("mailto:"):
        return label or url.removeprefix("mailto:")
    # "train.sh" typed is linked as <http://train.sh|train.sh>: the label is what was typed.
    return label if label and url.partition("://")[2].rstrip("/") == label.rstrip("/") else url


def _rich(block: Json, bot_user: str) -> str:
    parts = []
    for element in as_maps(block.get("elements")):
        if _is(element, "rich_text_list"):
            parts += [f"- {_inline(item, bot_user)}" for item in as_maps(element.get("elements"))]
        elif _is(element, "rich_text_preformatted"):
            code = _inline(element, bot_user)
            ticks = fence_around(code)
            parts.append(f"\n{ticks}\n{code}\n{ticks}\n")
        elif _is(element, "rich_text_quote"):
            parts.append("".join(f"> {line}\n" for line in _inline(element, bot_user).split("\n")))
        else:
            parts.append(_inline(element, bot_user))
    return "\n".join(part.strip("\n") for part in parts if part.strip())


def _inline(holder: Json, bot_user: str) -> str:
    return "".join(_piece(item, bot_user) for item in as_maps(holder.get("elements")))


def _piece(item: Json, bot_user: str) -> str:
    kind = item.get("type")
    text = ""
    if kind == "text":
        text = str(item.get("text", ""))
    elif kind == "link":
        text = _address(str(item.get("url", "")), item.get("text"))
    elif kind == "user":
        text = "" if item.get("user_id") == bot_user else f"@{item.get('user_id', '')}"
    elif kind == "channel":
        text = f"#{item.get('channel_id', '')}"
    elif kind == "broadcast":
        text = f"@{item.get('range', '')}"
    elif kind == "emoji":
        text = _emoji(item)
    elif kind == "rich_text_section":
        text = _inline(item, bot_user)
    return text


def _emoji(item: Json) -> str:
    """The characters themselves: in a pasted text Slack may take the slice ``:100:`` for an emoji."""
    try:
        return "".join(chr(int(part, 16)) for part in str(item.get("unicode", "")).split("-") if part) or _colons(item)
    except (ValueError, OverflowError):
        return _colons(item)


def _colons(item: Json) -> str:
    return f":{item.get('name', '')}:"


def _section(block: object, bot_user: str) -> str:
    text = block.get("text") if isinstance(block, Mapping) else None
    if isinstance(text, Mapping):
        text = text.get("text")
    return unescaped(text, bot_user) if isinstance(text, str) else ""


def _attached(item: Json, bot_user: str) -> str:
    """The text of a legacy attachment, which alerts and CI reports still use."""
    parts = [item.get("pretext"), item.get("title"), item.get("text")]
    texts = [unescaped(part, bot_user) for part in parts if isinstance(part, str) and part]
    return "\n".join(texts) or unescaped(str(item.get("fallback") or ""), bot_user)


def _file(item: Json) -> File:
    id = str(item.get("id") or "")
    return File(name=str(item.get("name") or item.get("title") or id or "file"), source=item, id=id)


def _is(block: object, kind: str) -> bool:
    return isinstance(block, Mapping) and block.get("type") == kind
