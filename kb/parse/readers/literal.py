"""One tolerant scanner for what JSON, Python literals and printed objects have in common. Never raises, linear time.

Brackets, quoted strings, numbers, words, comments, trailing commas, ``Name(key=value)``, ``<Enum.NAME: 'value'>``.
A value that is cut off at the end of the text is left out: half a number is not the number.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from trainmedic.kb.lazy import regex
from trainmedic.kb.model.run import Scalar
from trainmedic.kb.parse.readers.nodes import (
    DEEPEST,
    LONGEST_INTEGER,
    MOST_NODES,
    Entries,
    Flaw,
    Items,
    Leaf,
    Node,
    Pair,
    leaf,
    unresolved,
)

_BLANKS = regex(r"(?:\s+|//[^\n]*|#[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/)?)*")
_QUOTE = regex(r"(?P<prefix>[rbfuRBFU]{0,2})(?P<quote>\"\"\"|'''|[\"'“‘])")
_CALL = regex(r"(?P<name>[A-Za-z_][\w.]*)[ \t]*\(")
_KEYWORD = regex(r"(?P<key>[A-Za-z_]\w*)\s*=(?!=)")
_BARE_KEY = regex(r"[^\s:=,{}\[\]()\"'#]+")
_WORD = regex(r"[^\s,，:=\[\]{}()\"'#;]+")
_NUMBER = regex(r"[+-]?(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d+)?")
_WORDS: dict[str, Scalar] = {
    "true": True,
    "True": True,
    "false": False,
    "False": False,
    "null": None,
    "None": None,
    "undefined": None,
    "NaN": float("nan"),
    "nan": float("nan"),
    "Infinity": float("inf"),
    "inf": float("inf"),
    "-Infinity": float("-inf"),
    "-inf": float("-inf"),
    "+inf": float("inf"),
}
_ENUM = regex(r"<[\w.]+: (?P<value>.*)>", re.DOTALL)
_DOTTED = regex(r"[A-Za-z_][\w]*(?:\.[A-Za-z_]\w*)*")
_GAP = regex(r"[ \t]*[^\s,)\]}#;](?:[^\n,)\]}#]*[^\s,)\]}#])?")
_STEPS = regex(r"\"(?:[^\"\\\n]|\\.)*\"|[\[\]{},]")
_BRACKETS = regex(r"[\[\](){}\n]")
_CLOSERS = {"{": "}", "[": "]", "(": ")"}
_ESCAPE = regex(r"\\(?:u([0-9a-fA-F]{4})|([\s\S]))")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0"}


def word(text: str) -> Scalar:
    """A number, a constant, or the text itself."""
    if text in _WORDS:
        return _WORDS[text]
    if _NUMBER.fullmatch(text) and len(text) <= LONGEST_INTEGER:
        plain = text.replace("_", "")
        return int(plain) if plain.lstrip("+-").isdigit() else float(plain)
    return text


class Scanner:
    """Reads values from ``text`` at ``at``. ``flaws`` and ``partial`` record what could not be read."""

    def __init__(self, text: str, at: int = 0, *, code: str = "json_error", skip: Collection[str] = ()) -> None:
        self.text = text
        self.at = at
        self.code = code
        self.skip = skip
        self.count = 0
        self.flaws: list[Flaw] = []
        self.partial = False

    def value(self, depth: int = 0) -> Node | None:
        """The value at `at`; None if there is none or it is cut off. Always moves on unless at a closer or comma."""
        self.blanks()
        char = self.text[self.at : self.at + 1]
        if not char:
            self.partial = self.partial or depth > 0
            return None
        self.count += 1
        if depth > DEEPEST or self.count > MOST_NODES:
            self._too_much()
            return None
        if char == "{":
            return self.entries(depth)
        if char in "[(":
            return self._items(depth)
        if char == "<":
            return self._angle()
        if quoted := _QUOTE.match(self.text, self.at):
            return self._string(quoted)
        if call := _CALL.match(self.text, self.at):
            return self.call(call, depth)
        return self._word()

    def blanks(self) -> None:
        match = _BLANKS.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def flaw(self, message: str, start: int, end: int) -> None:
        """Note something unreadable; at most fifty are kept."""
        if len(self.flaws) < 50:
            self.flaws.append((self.code, message, start, end))

    def entries(self, depth: int) -> Node:
        """``{key: value, …}``; a set such as ``{'a', 'b'}`` becomes a list."""
        node = Entries(start=self.at, end=self.at)
        loose = Items(start=self.at, end=self.at)
        self.at += 1
        while not self._closed(node, "}"):
            start = self.at
            key = self._key(node)
            if key is None:
                loose_value = self.value(depth + 1)
                if loose_value is not None:
                    loose.items.append(loose_value)
                self._moved(start)
                continue
            if key[0] in self.skip:
                self._skip_value()
                continue
            value = self.value(depth + 1)
            if value is not None:
                node.pairs.append(Pair(key=key[0], start=key[1], end=key[2], value=value))
        if loose.items and not node.pairs:
            loose.end = node.end
            return loose
        return node

    def call(self, match: re.Match[str], depth: int) -> Node:
        """``Name(key=value, …)``. Positional arguments are read past."""
        node = Entries(start=self.at, end=self.at, name=match["name"])
        self.at = match.end()
        while not self._closed(node, ")"):
            start = self.at
            keyword = _KEYWORD.match(self.text, self.at)
            if keyword:
                self.at = keyword.end()
            value = self.value(depth + 1)
            if value is not None and keyword:
                value = self.whole(value)
                node.pairs.append(Pair(key=keyword["key"], start=start, end=start + len(keyword["key"]), value=value))
            self._moved(start)
        return node

    def whole(self, value: Node) -> Node:
        """``value``, or an unresolved one where it only starts an expression (``2 * 3``, ``a if b else c``)."""
        gap = _GAP.match(self.text, self.at)
        if gap is None:
            return value
        self.at = gap.end()
        return unresolved(self.text, value.start, self.at)

    def _items(self, depth: int) -> Node:
        node = Items(start=self.at, end=self.at)
        closer = _CLOSERS[self.text[self.at]]
        self.at += 1
        while not self._closed(node, closer):
            start = self.at
            value = self.value(depth + 1)
            if value is not None:
                node.items.append(value)
            self._moved(start)
        return node

    def _closed(self, node: Entries | Items, closer: str) -> bool:
        """Step over blanks and commas; True at the end of the container, however it comes."""
        self.blanks()
        while self.text[self.at : self.at + 1] in (",", ";", "，") and self.at < len(self.text):
            self.at += 1
            self.blanks()
        char = self.text[self.at : self.at + 1]
        if char and char not in ")]}":
            return False
        if char == closer:
            self.at += 1
        elif char:  # another bracket's closer: it ends this one too
            self.flaw(f"{closer} is missing before {char}", self.at, self.at + 1)
            self.at += char in ")]}" and not node.start
        else:
            if not self.partial:
                self.flaw(f"the text ends before {closer}", node.start, node.start + 1)
            self.partial = True
        node.end = self.at
        return True

    def _moved(self, start: int) -> None:
        if self.at == start:
            self.flaw(f"{self.text[start]} is not expected here", start, start + 1)
            self.at += 1

    def _key(self, node: Entries) -> tuple[str, int, int] | None:
        start = self.at
        quoted = _QUOTE.match(self.text, start)
        if quoted:
            string = self._string(quoted)
            key, end = (string.raw, string.end) if string is not None else ("", start)
        else:
            bare = _BARE_KEY.match(self.text, start)
            key, end = (bare[0], bare.end()) if bare else ("", start)
        if quoted and end == start:
            return None
        self.at = end
        self.blanks()
        if self.text[self.at : self.at + 1] in (":", "：", "="):
            self.at += 1
            return key, start, end
        self.at = start
        return None

    def _string(self, opened: re.Match[str]) -> Leaf | None:
        start, quote = opened.start(), opened["quote"]
        closer = {"“": "”", "‘": "’"}.get(quote, quote)
        at = opened.end()
        multiline = len(closer) == 3
        while True:
            end = self.text.find(closer, at)
            if end < 0 or (not multiline and (feed := self.text.find("\n", at, end)) >= 0):
                feed = self.text.find("\n", opened.end())
                self.at = len(self.text) if feed < 0 or multiline else feed
                self.flaw("a quotation mark is opened and never closed", start, min(self.at, start + 80))
                self.partial = True
                return None
            before = self.text[opened.end() : end]
            if "r" in opened["prefix"].lower() or (len(before) - len(before.rstrip("\\"))) % 2 == 0:
                break
            at = end + 1
        self.at = end + len(closer)
        content = before
        if "\\" in before and "r" not in opened["prefix"].lower():
            content = _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else _ESCAPES.get(m[2], m[2]), before)
        return Leaf(start=start, end=self.at, value=content, raw=content, quoted=True)

    def _angle(self) -> Node:
        start = self.at
        feed = self.text.find("\n", start)
        line = self.text[start : feed if feed >= 0 else len(self.text)][:400]
        close = line.find(">", 1)
        if close < 0:
            self.at = start + len(line)
            self.partial = self.partial or feed < 0
            return unresolved(self.text, start, self.at)
        self.at = start + close + 1
        enum = _ENUM.fullmatch(self.text, start, self.at)
        if not enum:
            return unresolved(self.text, start, self.at)
        held = enum["value"]
        value: Scalar = held[1:-1] if len(held) > 1 and held[0] == held[-1] and held[0] in "'\"" else word(held)
        return leaf(self.text, start, self.at, value)

    def _word(self) -> Node | None:
        start = self.at
        match = _WORD.match(self.text, start)
        if not match:
            return None
        self.at = match.end()
        if self.at == len(self.text) and start:  # it may be cut off
            self.partial = True
            return None
        value = word(match[0])
        following = self.text[self.at : self.at + 1]
        if following and following in "([" and _DOTTED.fullmatch(match[0]):
            self._skip_bracket()
            return unresolved(self.text, start, self.at)
        return leaf(self.text, start, self.at, value)

    def _skip_value(self) -> None:
        self.blanks()
        depth = 0
        for match in _STEPS.finditer(self.text, self.at):
            depth += match[0] in ("[", "{")
            depth -= match[0] in ("]", "}")
            if depth <= 0:
                self.at = match.end() if match[0] not in (",",) and depth == 0 else match.start()
                return
        self.at = len(self.text)
        self.partial = True

    def _skip_bracket(self) -> None:
        depth = 0
        for match in _BRACKETS.finditer(self.text, self.at, self.at + 2000):
            char = match[0]
            depth += char in "[({"
            depth -= char in "])}"
            if depth == 0 or char == "\n":
                self.at = match.end() - (char == "\n")
                return
        self.at += 1

    def _too_much(self) -> None:
        self.flaw("nested too deeply or too long to be read to its end", self.at, self.at)
        self.partial = True
        self.at = len(self.text)
