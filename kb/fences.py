"""Code fences of Markdown (CommonMark 4.5)."""

from __future__ import annotations

from itertools import count


def fence_of(line: str) -> tuple[str, str]:
    """The fence in ``line`` and its info string; ``("", "")`` if the line is not a fence."""
    body = line.lstrip(" ")
    mark = body[:1]
    info = body.lstrip(mark) if mark in ("`", "~") else body
    fence = body[: len(body) - len(info)]
    # Ticks after ticks make a code span, not a fence.
    if len(line) - len(body) > 3 or len(fence) < 3 or (mark == "`" and "`" in info):
        return "", ""
    return fence, info.strip()


def fence_after(line: str, fence: str) -> str:
    """The fence that is open after ``line``, given the one open before it; empty outside of code blocks."""
    other, info = fence_of(line)
    if not fence or not other:
        return fence or other
    closes = other[0] == fence[0] and len(other) >= len(fence) and not info
    return "" if closes else fence


def fence_around(text: str, shortest: int = 3) -> str:
    """The shortest run of ticks, at least ``shortest``, that does not occur in ``text``."""
    return next(fence for length in count(shortest) if (fence := "`" * length) not in text)
