"""Text for Slack: escaping, mentions made inert, Markdown split without loss. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainmedic.kb.fences import fence_after, fence_of
from trainmedic.kb.lazy import regex

ZERO_WIDTH = "\u200b"
"""Put after what would begin a mention: invisible, and no one is notified any more."""
FALLBACK = 3_000
"""Characters of a notification's text; the blocks hold all of it."""
MAX_LINK = 900
"""Characters of an address; a longer one is not linked."""
_MENTION = regex(r"<(?=[!@#]|at\b|person\b)|@(?=everyone\b|here\b|channel\b|all\b)")
_TOKEN = regex(r"<[^>]*>|&[a-z]+;|.", re.DOTALL)


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def inert(markdown: str) -> str:
    """Markdown in which no chat service sees a mention: a pasted ``<!channel>`` would notify a whole group.

    Full escaping would be visible inside code blocks.
    """
    return _MENTION.sub(rf"\g<0>{ZERO_WIDTH}", markdown)


def link(url: str, label: str) -> str:
    """A mrkdwn link; only the label unless the address is an http(s) URL."""
    if not url.startswith(("https://", "http://")):
        return escape(label)
    # These characters end an address in mrkdwn.
    address = url.replace("|", "%7C").replace("<", "%3C").replace(">", "%3E").replace(" ", "%20").replace("&", "&amp;")
    return f"<{address}|{escape(label).replace('|', '¦')}>" if len(address) <= MAX_LINK else escape(label)


def wrapped(mrkdwn: str, limit: int) -> list[str]:
    """``mrkdwn`` in parts of at most ``limit`` characters, with no link and no escape cut in two."""
    parts = [""]
    for token in _TOKEN.findall(mrkdwn) if len(mrkdwn) > limit else [mrkdwn]:
        if len(parts[-1]) + len(token) > limit and parts[-1]:
            parts.append("")
        parts[-1] += token
    return [part for part in parts if part]


def fallback(markdown: str) -> str:
    """The beginning of a text for notifications, escaped."""
    first, *rest = wrapped(escape(markdown.replace("**", "")), FALLBACK) or [""]
    return f"{first}…" if rest else first


def split_markdown(text: str, limit: int) -> list[str]:
    """``text`` in pieces of at most ``limit`` characters, cut between paragraphs if possible.

    A code block that is cut is closed and opened again, so that every piece is valid Markdown. At least one piece.
    """
    pieces: list[str] = []
    current = ""
    for atom in _atoms(text):
        joined = f"{current}\n\n{atom}" if current else atom
        if len(joined) <= limit:
            current = joined
            continue
        if current:
            pieces.append(current)
        *whole, current = _cut(atom, limit)
        pieces += whole
    return [*pieces, current] if current or not pieces else pieces


def _atoms(text: str) -> Iterator[str]:
    """Paragraphs, and code blocks with their blank lines."""
    held: list[str] = []
    fence = ""
    for line in text.split("\n"):
        before, fence = fence, fence_after(line, fence)
        if fence and not before:
            if held:
                yield "\n".join(held)
            held = [line]
        elif before or line.strip():
            held.append(line)
        if held and not fence and (before or not line.strip()):
            yield "\n".join(held)
            held = []
    if held:
        yield "\n".join([*held, fence] if fence else held)


def _cut(atom: str, limit: int) -> list[str]:
    """One paragraph or code block in pieces of at most ``limit`` characters, cut between lines; fences are repeated."""
    lines = atom.split("\n")
    fence, _ = fence_of(lines[0])
    before, after = "", ""
    # An absurdly long info string is not worth repeating in each piece.
    if fence and len(lines) > 1 and len(lines[0]) < limit // 4:
        before, after = f"{lines[0]}\n", f"\n{fence}"
        lines = lines[1:-1]
    room = limit - len(before) - len(after)
    pieces: list[str] = []
    current: str | None = None
    for line in lines:
        for start in range(0, max(1, len(line)), room):
            part = line[start : start + room]
            joined = part if current is None else f"{current}\n{part}"
            if len(joined) <= room and not start:
                current = joined
            else:
                if current is not None:
                    pieces.append(current)
                current = part
    pieces.append(current or "")
    return [f"{before}{piece}{after}" for piece in pieces]
