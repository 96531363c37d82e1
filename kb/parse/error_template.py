"""An error message without what differs between runs that fail alike. Pure."""

from __future__ import annotations

from trainmedic.kb.lazy import regex

_VARIABLE = regex(r"0x[0-9a-f]+|(?<![a-z])\d[\d.,:e+-]*|[^\s'\"(]*/[^\s'\")]*|'[^']*'|\"[^\"]*\"")
"""Numbers, addresses, paths and quoted texts."""


def template(message: str) -> str:
    """The first line of a message without what differs between runs."""
    line = next(iter(message.strip().splitlines()), "")
    return " ".join(_VARIABLE.sub("*", line.lower()).split())[:200]
