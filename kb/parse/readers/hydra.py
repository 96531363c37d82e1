"""Hydra overrides (``key=value``, ``+key=value``, ``++key=value``, ``~key``) and the value texts of command lines.

Grammar facts: hydra.cc/docs/advanced/override_grammar/basic. Interpolations (``${…}``) stay unresolved.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace

from trainmedic.kb.lazy import regex
from trainmedic.kb.model.run import Option, Origin, Scalar, Unresolved, Value
from trainmedic.kb.parse.readers.nodes import LONGEST_INTEGER
from trainmedic.kb.parse.readers.shell_expand import Arg
from trainmedic.kb.parse.source import Piece

_OVERRIDE = regex(r"(?P<sign>\+\+|\+|~)?(?P<key>[A-Za-z_][\w.\-/@]*)(?:=(?P<value>.*))?", re.DOTALL)
_INTEGER = regex(r"[+-]?\d+(?:_\d+)*")
_FLOAT = regex(r"[+-]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?")
_WORDS: dict[str, Scalar] = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NOTHING = ("None", "null", "Null", "NULL")
_DEEPEST = 20


def scalar(text: str) -> Scalar:
    """A command line's text as the number, boolean or nothing it looks like, else the text itself."""
    if _INTEGER.fullmatch(text):
        return int(text) if len(text) <= LONGEST_INTEGER else text
    if _FLOAT.fullmatch(text):
        return float(text)
    if text in _NOTHING:
        return None
    return _WORDS.get(text, text)


def typed(text: str) -> Value:
    """`scalar`, and inline JSON (``{…}``, ``[…]``) as a mapping or tuple; JSON that cannot be read stays text."""
    if text[:1] in ("{", "["):
        try:
            return _frozen(json.loads(text))
        except (ValueError, RecursionError):
            return text
    return scalar(text)


def is_override(arg: Arg) -> bool:
    """Whether a word is an override: ``~key``, or a key followed by ``=``."""
    found = _OVERRIDE.match(arg.text)
    return found is not None and (found["value"] is not None or found["sign"] == "~")


def read(arg: Arg, piece: Piece) -> Option | None:
    """The override that one word is, or None. ``~key`` removes a key: its value is None and its raw text ``~``."""
    found = _OVERRIDE.fullmatch(arg.text)
    if found is None or not is_override(arg):
        return None
    written = piece.text[arg.start : arg.end]
    key_at = arg.start + max(written.find(found["key"]), 0)
    option = Option(
        key=found["key"],
        value=None,
        raw="~",
        span=piece.span(arg.start, arg.end),
        key_span=piece.span(key_at, key_at + len(found["key"])),
        value_span=None,
        origin=Origin.HYDRA,
    )
    text = found["value"]
    if text is None:
        return option
    inner = written[-1:] if written[:1] in ("'", '"') and written[-1:] == written[:1] else ""
    value_span = piece.span(arg.start + written.find("=") + 1, arg.end - len(inner))
    raw = value_span.text
    value = value_of(text) if arg.resolved else Unresolved(raw)
    quoted = raw[:1] in ("'", '"') or text[:1] in ("'", '"')
    if len(raw) > 1 and quoted and raw[-1] == raw[0]:
        raw = raw[1:-1]
    return replace(option, value=value, raw=raw, value_span=value_span, quoted=quoted)


def value_of(text: str) -> Value:
    """A hydra value: null, booleans, numbers, quoted text, ``[a,b]``, ``{k:v}``. Text if it does not parse."""
    text = text.strip()
    if "${" in text:
        return Unresolved(text)
    if text[:1] in ("[", "{"):
        reader = _Nested(text)
        value = reader.value(0)
        return value if reader.at == len(text) and not reader.failed else text
    return _plain(text)


def _plain(text: str) -> Scalar:
    if len(text) >= 2 and text[0] in "'\"" and text[-1] == text[0]:
        return text[1:-1]
    return None if text in _NOTHING else scalar(text)


def _frozen(value: object) -> Value:
    if isinstance(value, dict):
        return {str(k): _frozen(v) for k, v in value.items()}
    if isinstance(value, list):
        return tuple(_frozen(v) for v in value)
    return value if isinstance(value, str | int | float | bool) else None


class _Nested:
    """Lists and mappings in hydra's notation, read left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.failed = False

    def value(self, depth: int) -> Value:
        char = self.text[self.at : self.at + 1]
        if depth > _DEEPEST:
            self.failed = True
        elif char == "[":
            return self._items(depth)
        elif char == "{":
            return self._entries(depth)
        return self._word(",]}" if depth else "")

    def _items(self, depth: int) -> Value:
        out: list[Value] = []
        self.at += 1
        while not self._closes("]"):
            out.append(self.value(depth + 1))
        return tuple(out)

    def _entries(self, depth: int) -> Value:
        out: dict[str, Value] = {}
        self.at += 1
        while not self._closes("}"):
            key = self._word(":,]}")
            if self.text[self.at : self.at + 1] != ":":
                self.failed = True
                break
            self.at += 1
            self._blanks()
            out[str(key)] = self.value(depth + 1)
        return out

    def _closes(self, closer: str) -> bool:
        """Step over blanks and one comma; True at the closing bracket or where reading cannot go on."""
        self._blanks()
        if self.text[self.at : self.at + 1] == ",":
            self.at += 1
            self._blanks()
        char = self.text[self.at : self.at + 1]
        if char == closer:
            self.at += 1
            return True
        self.failed = self.failed or not char or char in "]},"
        return self.failed

    def _word(self, stops: str) -> Scalar:
        start = self.at
        quote = self.text[start : start + 1]
        if quote and quote in "'\"":
            end = self.text.find(quote, start + 1)
            if end >= 0:
                self.at = end + 1
                self._blanks()
                return self.text[start + 1 : end]
        while self.at < len(self.text) and self.text[self.at] not in stops:
            self.at += 1
        return _plain(self.text[start : self.at].strip())

    def _blanks(self) -> None:
        while self.text[self.at : self.at + 1].isspace():
            self.at += 1
