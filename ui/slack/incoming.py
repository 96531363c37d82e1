"""What people write in Slack, as the text they meant. Pure.

Slack's ``text`` is escaped and altered (addresses in angle brackets, emoji as names); the ``blocks`` of a message hold
what was typed, code blocks apart. A pasted config is read from there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainmedic.kb.language import language_of

Json = Mapping[str, Any]
KEPT_SUBTYPES = frozenset({None, "", "file_share", "thread_broadcast"})
"""Kinds of message that somebody wrote. Others are edits, deletions, joins and the like."""
_LINK = re.compile(r"<(?P<url>(?:https?|ftp|mailto):[^|>]*)(?:\|(?P<label>[^>]*))?>")
_REFERENCE = re.compile(r"<(?P<kind>[@#!])(?P<id>[^|>]*)(?:\|(?P<label>[^>]*))?>")
_FENCED = re.compile(r"^(?P<ticks>`{3,})[^\n]*\n.*?(?:^(?P=ticks)[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_MRKDWN_FENCE = re.compile(r"```(?!\n)(?P<code>[^`]+?)(?<!\n)```")


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingMessage:
    """One message. ``bot`` is True for any app's; ``own`` for ours."""

    ts: str
    user: str
    text: str
    files: tuple[Json, ...] = ()
    bot: bool = False
    own: bool = False


def written(message: Json, bot_user: str, bot_id: str) -> IncomingMessage:
    """A message of an event, of a thread or of a shortcut; our own mention is left out of its text."""
    own = message.get("user") == bot_user or (bool(bot_id) and message.get("bot_id") == bot_id)
    return IncomingMessage(
        ts=str(message.get("ts", "")),
        user=str(message.get("user") or message.get("bot_id") or ""),
        text=text_of(message, bot_user),
        files=tuple(item for item in message.get("files") or () if isinstance(item, Mapping)),
        bot=bool(message.get("bot_id")) or message.get("subtype") == "bot_message",
        own=own,
    )


def text_of(message: Json, bot_user: str) -> str:
    """What was typed: from rich text where there is any, else the text unescaped; then what an app attached."""
    rich = [block for block in message.get("blocks") or () if _is(block, "rich_text")]
    if rich:
        text = "\n".join(_rich(block, bot_user) for block in rich)
    else:
        text = unescaped(str(message.get("text") or ""), bot_user)
        text = text or "\n".join(_section(block, bot_user) for block in message.get("blocks") or ())
    attached = [_attached(item, bot_user) for item in message.get("attachments") or () if isinstance(item, Mapping)]
    return "\n".join(part for part in (text.strip(), *attached) if part)


def unescaped(text: str, bot_user: str = "") -> str:
    """Slack's ``text`` as typed: our mention out, addresses bare, other mentions by their names."""

    def named(match: re.Match[str]) -> str:
        if match["kind"] == "@" and match["id"] == bot_user:
            return ""
        return match["kind"].replace("!", "@") + (match["label"] or match["id"])

    text = _REFERENCE.sub(named, text)  # before unescaping: a typed "<@U1>" arrives escaped and is no mention
    text = _LINK.sub(lambda match: _address(match["url"], match["label"]), text)
    text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return _MRKDWN_FENCE.sub(lambda match: f"```\n{match['code']}\n```", text).strip()


def mentions(message: Json, bot_user: str) -> bool:
    """Whether the message addresses us."""
    return f"<@{bot_user}>" in str(message.get("text") or "") or f"<@{bot_user}|" in str(message.get("text") or "")


def spoken(text: str) -> str:
    """The language that somebody speaks: of the words outside code blocks, and of the line they begin with.

    A pasted command would make an English text of any Chinese question.
    """
    prose = _FENCED.sub("", text).strip()
    return "zh" if "zh" in (language_of(prose), language_of(prose.partition("\n")[0])) else "en"


def has_words(text: str) -> bool:
    """Whether anything but code blocks was written."""
    return bool(_FENCED.sub("", text).strip())


def is_written(message: Json) -> bool:
    """Whether a person or an app wrote this just now: no edit, no deletion, no joining."""
    return not message.get("hidden") and message.get("subtype") in KEPT_SUBTYPES


def _address(url: str, label: str | None) -> str:
    if url.startswith("mailto:"):
        return label or url.removeprefix("mailto:")
    # "train.sh" typed is linked as <http://train.sh|train.sh>: the label is what was typed.
    return label if label and url.partition("://")[2].rstrip("/") == label.rstrip("/") else url


def _rich(block: Json, bot_user: str) -> str:
    parts = []
    for element in _maps(block.get("elements")):
        if _is(element, "rich_text_list"):
            parts += [f"- {_inline(item, bot_user)}" for item in _maps(element.get("elements"))]
        elif _is(element, "rich_text_preformatted"):
            code = _inline(element, bot_user)
            ticks = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", code)), default=0))
            parts.append(f"\n{ticks}\n{code}\n{ticks}\n")
        elif _is(element, "rich_text_quote"):
            parts.append("".join(f"> {line}\n" for line in _inline(element, bot_user).split("\n")))
        else:
            parts.append(_inline(element, bot_user))
    return "\n".join(part.strip("\n") for part in parts if part.strip())


def _inline(holder: Json, bot_user: str) -> str:
    return "".join(_piece(item, bot_user) for item in _maps(holder.get("elements")))


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
    """The characters themselves: ``:100:`` in a paste may be an emoji to Slack and a slice to Python."""
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
    """What an app attached the old way: alerts and CI reports still come so."""
    parts = [item.get("pretext"), item.get("title"), item.get("text")]
    shown = [unescaped(part, bot_user) for part in parts if isinstance(part, str) and part]
    return "\n".join(shown) or unescaped(str(item.get("fallback") or ""), bot_user)


def _is(block: object, kind: str) -> bool:
    return isinstance(block, Mapping) and block.get("type") == kind


def _maps(value: object) -> Sequence[Json]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
