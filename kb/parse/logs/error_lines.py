"""Errors that are quoted without their type, or with its beginning cut off: ``size mismatch for …``, ``…eError: …``.

`kb.parse.logs.tracebacks` reads all that name their type; here are the messages that tell it by themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from trainmedic.kb.data_files import load_table
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Traceback
from trainmedic.kb.negation import RUN
from trainmedic.kb.parse.logs.messages import goes_on
from trainmedic.kb.parse.source import Piece

_MOST = 20
_NEAR = 12
_TABLE = load_table("parse/data/error_messages.toml")
_LITERALS = tuple(start for starts in _TABLE["starts"].values() for start in starts)
_HINTS = (*_LITERALS, "has no attribute", "unexpected keyword", "required positional", "appear to have", "Error:")
_CLOSING = {"`": "`", "'": "'", '"': '"', "“": "”", "‘": "’", "(": ")", "（": "）", "「": "」", "*": "*"}
_MESSAGE = regex(
    "|".join(
        (
            r"(?:\.\.\.|…)[a-z]{0,40}(?:Error|Exception): (?=\S)",
            *(f"(?P<{name}>{'|'.join(map(re.escape, starts))})" for name, starts in _TABLE["starts"].items()),
            *(f"(?P<{name}>{'|'.join(patterns)})" for name, patterns in _TABLE["patterns"].items()),
        )
    )
)


def read(piece: Piece, known: Sequence[Traceback]) -> Iterator[Traceback]:
    """The errors of a piece on lines that none of the ``known`` exceptions is on, once each."""
    text = piece.text
    if not any(hint in text for hint in _HINTS):
        return
    messages: set[str] = set()
    lines = [(trace.span.line, trace.span.end_line) for trace in known if trace.span.attachment == piece.source]
    for match in _MESSAGE.finditer(text):
        at = match.start()
        line = piece.position(at)[0]
        if any(first <= line <= last for first, last in lines) or denied(text, at) or goes_on(text, at):
            continue
        start = at if match.lastgroup else match.end()
        end = message_end(text, at, start)
        message = text[start:end]
        if message in messages or len(messages) >= _MOST:
            continue
        messages.add(message)
        lines.append((line, line))
        root = not known and len(messages) == 1
        span = piece.span(at, end)
        yield Traceback(exception=match.lastgroup or "", message=message, span=span, root=root)


def denied(text: str, start: int) -> bool:
    """Whether the error that begins at ``start`` is one that did not occur: "no RuntimeError: it just hangs"."""
    return RUN.precedes(text, start, max(0, start - _NEAR))


def message_end(text: str, quoted: int, start: int) -> int:
    """Where a message ends that is quoted in a sentence: at the mark that closes the one before ``quoted``, at Chinese
    punctuation, with the line. The message begins at ``start``."""
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    if quoted and (close := _CLOSING.get(text[quoted - 1])) is not None:
        depth = 0
        for at in range(start, end):
            if text[at] == close and not depth and not text[at + 1 : at + 2].isalnum():
                end = at
                break
            depth = _depth(depth, text[quoted - 1], text[at], close)
    end = min((at for mark in "，。；？！" if (at := text.find(mark, start, end)) >= 0), default=end)
    return start + len(text[start:end].rstrip(" \t*"))


def _depth(depth: int, opening: str, character: str, close: str) -> int:
    """How deep inner quotation marks or brackets are nested behind ``character``."""
    if opening == close:
        return 1 - depth if character == close else depth
    return depth + (character == opening) - (character == close)
