"""Tracebacks for the log. What an exception says may quote a user's text, so it is left out."""

from __future__ import annotations

import traceback


def trace_of(error: BaseException) -> str:
    """The frames and types of an error and of those behind it, without their messages."""
    parts: list[str] = []
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        parts.insert(0, "".join(traceback.format_tb(cause.__traceback__)) + type(cause).__qualname__)
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return "\nwhich led to\n".join(parts)
