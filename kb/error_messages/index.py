"""Finds messages of the index in a text: literal parts in their order, holes match anything on the way.

A message is looked up by its anchor, a stretch of up to three words that is rare among its package's messages, and
then compared as a whole. A message that is quoted without its end still counts if its beginning is long enough.
Backticks do not count: a message that is pasted as Markdown has lost them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import TypeAlias

from trainmedic.kb.data_files import load_texts
from trainmedic.kb.error_messages.tables import Entry, MessageTable, Place
from trainmedic.kb.error_messages.template import split

SAID, REST = "error_messages/data/said.xz", "error_messages/data/rest.xz"
"""The shipped tables, each part of them by package. Of the rest one block is read for a message: `REST_BLOCK`."""
REST_BLOCK = 600_000
MOST_LINES = 3000
"""Different lines of one text that are searched; of a longer one the beginning and the end."""
LONGEST_VALUE = 300
SHORTEST_QUOTE = 40
"""Characters of a message's beginning that count as the message."""
LONG_QUOTE = 80
"""The same where the text goes on in other words, as in a release that says it differently."""
SPECIFIC = 24
"""Literal characters from which on a message may stand anywhere in a line; a shorter one must be all that it says."""
_SHIFT = 20
_MARKS = ".,:;!?"
_CLOSING = ("…", "...", '"', "'", "”", "」", ")")
_SENTENCE_ENDS = (". ", ": ", "; ", "! ", "? ")
_OPENING = (":", "(", '"', "'", "“", "「", "-", ">", "]", "|", "，", "：", "*")


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A message in a text. ``first`` and ``last`` are (line, column) from 0 of its first character and behind its last.

    ``values`` are the texts in the holes, by the holes' expressions. ``literal`` counts the literal characters that
    match; ``is_whole`` is False if only the beginning does.
    """

    entry: Entry
    first: tuple[int, int]
    last: tuple[int, int]
    values: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    literal: int = 0
    is_whole: bool = True


class MessageIndex:
    """The messages of all packages, by the stretches of text that they are looked up by."""

    def __init__(self, tables: Iterable[MessageTable]) -> None:
        self.tables = tuple(tables)
        self._anchors: dict[str, list[int]] = {}
        for number, table in enumerate(self.tables):
            for code, anchor in enumerate(table.anchors(), number << _SHIFT):
                if "`" in anchor:
                    anchor = " ".join(anchor.replace("`", "").split())
                if anchor:
                    self._anchors.setdefault(anchor.rstrip(_MARKS) or anchor, []).append(code)

    def at(self, line: int, is_file: Callable[[str], bool]) -> tuple[Entry, Place] | None:
        """The message of a line of a file; for indexes of few files."""
        pairs = ((entry, place) for table in self.tables for entry in table for place in entry.places)
        return next((pair for pair in pairs if pair[1].line == line and is_file(pair[1].file)), None)

    def find(self, lines: Sequence[str], starts: Sequence[int] = ()) -> list[Occurrence]:
        """The messages in the lines of a text, in the order of the text. ``starts`` are the columns at which the lines'
        own text begins, behind the prefix of a process."""
        text = _Text(lines, starts)
        if not text.words:
            return []
        occurrences = [self._compared(code, word, text) for code, word in self._candidates(text.words)]
        return [occurrence for occurrence in occurrences if occurrence is not None]

    def _candidates(self, words: Sequence[str]) -> Iterator[tuple[int, int]]:
        """(message, number of the word at which its anchor begins)."""
        anchors = self._anchors
        count = len(words)
        # A message is quoted without the mark at its end, or with one that it does not have.
        bare = [word.rstrip(_MARKS) or word for word in words]
        for at, word in enumerate(words):
            pair = f"{word} {bare[at + 1]}" if at + 1 < count else ""
            three = f"{word} {words[at + 1]} {bare[at + 2]}" if at + 2 < count else ""
            name = word[: word.index("=") + 1] if "=" in word else ""
            for key in (three, pair, bare[at], name):
                if key in anchors:
                    for code in anchors[key]:
                        yield code, at

    def _compared(self, code: int, word: int, text: _Text) -> Occurrence | None:
        table = self.tables[code >> _SHIFT]
        number = code & ((1 << _SHIFT) - 1)
        template, anchor = table.template(number)
        if "`" in template:
            anchor -= template.count("`", 0, anchor)
            template = template.replace("`", "")
        parts, holes = split(template)
        match = _matched(parts, *_place_of_anchor(template, anchor), text, word)
        if match is None:
            return None
        bounds, literal, whole = match
        values: dict[str, str] = {}
        for hole, (left, right) in zip(holes, _between(bounds, text, len(parts)), strict=False):
            value = text.joined[left:right].strip()
            if hole and value and len(value) <= LONGEST_VALUE:
                values.setdefault(hole, value)
        if any(value == f"{{{hole}}}" for hole, value in values.items()):
            return None  # a line of source code, not what it printed
        start, end = bounds[0][0] if parts[0] else bounds[0][1], bounds[-1][1]
        if not parts[0]:
            start = max(text.line_start(bounds[1][0]), bounds[1][0] - LONGEST_VALUE) if len(bounds) > 1 else start
        return Occurrence(
            entry=table.entry(number),
            first=text.position(start),
            last=text.position(end, end=True),
            values=MappingProxyType(values),
            literal=literal,
            is_whole=whole,
        )


class _Text:
    """The words of a text without backticks, joined by single spaces, and where they are. ``ticks``: the offsets of the
    backticks."""

    def __init__(self, lines: Sequence[str], starts: Sequence[int]) -> None:
        self._lines = lines
        self._starts = starts
        self._raw: list[str] = []
        self._line_of: list[int] = []
        for number, line in enumerate(lines):
            raw = (line[starts[number] :] if starts else line).split()
            if "`" in line:
                raw = [word for word in raw if word.strip("`")]
            self._raw += raw
            self._line_of += [number] * len(raw)
        self.words = [word.replace("`", "") for word in self._raw]
        self.joined = " ".join(self.words)
        self.offsets = [0, *accumulate(len(word) + 1 for word in self.words)][:-1]
        self.ticks = frozenset(self._ticks())

    def _ticks(self) -> Iterator[int]:
        for offset, raw in zip(self.offsets, self._raw, strict=True):
            for piece in raw.split("`")[:-1]:
                offset += len(piece)
                yield offset

    def word_at(self, offset: int) -> int:
        return bisect_right(self.offsets, offset) - 1

    def line_start(self, offset: int) -> int:
        """The offset of the first word of the line that holds ``offset``."""
        return self.offsets[bisect_right(self._line_of, self._line_of[self.word_at(offset)] - 1)]

    def line_end(self, offset: int) -> int:
        """The offset behind the last word of the line that holds ``offset``."""
        last = bisect_right(self._line_of, self._line_of[self.word_at(offset)]) - 1
        return self.offsets[last] + len(self.words[last])

    def position(self, offset: int, *, end: bool = False) -> tuple[int, int]:
        """(line, column) of a character; with ``end`` of the place behind the character before ``offset``."""
        word = self.word_at(max(0, offset - end))
        line = self._line_of[word]
        first = bisect_right(self._line_of, line - 1)
        column = self._starts[line] if self._starts else 0
        text = self._lines[line]
        for number in range(first, word + 1):
            column = text.index(self._raw[number], column)
            if number < word:
                column += len(self._raw[number])
        return line, column + _raw_length(self._raw[word], offset - self.offsets[word], end=end)


def _raw_length(raw: str, count: int, *, end: bool) -> int:
    """How much of a word its first ``count`` characters take that are not backticks; at the ``end`` of a message with
    the backticks behind them. The blank behind a word, where a message that was cut off may end, is not part of it."""
    at = 0
    while at < len(raw) and (count or (end and raw[at] == "`")):
        count -= raw[at] != "`"
        at += 1
    return at


def _place_of_anchor(template: str, anchor: int) -> tuple[int, int]:
    """(part, offset in the part) of the anchor, which holds no brace."""
    before = split(template[:anchor] + "\x03")[0]
    part = len(before) - 1
    return part, before[-1].index("\x03")


Bounds = list[tuple[int, int]]


def _matched(parts: Sequence[str], part: int, offset: int, text: _Text, word: int) -> tuple[Bounds, int, bool] | None:
    """The bounds of the parts in the joined text, the literal characters that match, and whether all do."""
    joined = text.joined
    start = text.offsets[word] - offset
    if start < 0:
        return None
    bounds: Bounds = []
    end = start
    for number in range(part - 1, -1, -1):
        found = (
            joined.rfind(parts[number], max(0, end - LONGEST_VALUE - len(parts[number])), end) if parts[number] else end
        )
        if found < 0:
            return None
        bounds.insert(0, (found, found + len(parts[number])))
        end = found
    begin = bounds[0][0] if bounds else start
    shared = _shared(text, start, parts[part])
    bounds.append((start, start + shared))
    whole = shared == len(parts[part])
    at = start + shared
    for number in range(part + 1, len(parts) if whole else 0):
        found = _next(parts[number], at, text, is_last=number == len(parts) - 1)
        if found < 0:
            whole = False
            break
        at = found + len(parts[number])
        bounds.append((found, at))
    literal = sum(right - left for left, right in bounds)
    if not whole and literal < (SPECIFIC if _is_all_but_marks(parts, bounds) else SHORTEST_QUOTE):
        return None
    if max(map(len, parts)) < SPECIFIC and not _begins(begin, parts[0], text):
        return None
    if literal < SPECIFIC and not _is_alone(begin, at, parts, text):
        return None
    return bounds, literal, whole


def _is_all_but_marks(parts: Sequence[str], bounds: Bounds) -> bool:
    """Whether nothing but punctuation is missing of a message."""
    last = len(bounds) - 1
    rest = (parts[last][bounds[last][1] - bounds[last][0] :], *parts[last + 1 :])
    return not any(character.isalnum() for part in rest for character in part)


def _is_alone(begin: int, end: int, parts: Sequence[str], text: _Text) -> bool:
    """Whether a line says no more than a short message, whose first hole is one word."""
    if text.joined[end : text.line_end(max(0, end - 1))].strip(" .!\"')]}…"):
        return False
    return bool(parts[0]) or " " not in text.joined[text.line_start(begin) : begin].rpartition(": ")[2].strip()


def _shared(text: _Text, start: int, part: str) -> int:
    """How many characters of a part stand at ``start``: all, or as many words as the text has before its line or
    sentence ends; 0 if it goes on in other words."""
    joined = text.joined
    if joined.startswith(part, start):
        return len(part)
    stretch = joined[start : start + len(part)]
    same = next(
        (at for at, (left, right) in enumerate(zip(stretch, part, strict=False)) if left != right), len(stretch)
    )
    closed = joined.startswith(_CLOSING, start + same) or start + same in text.ticks
    if start + same < text.line_end(start + max(0, same - 1)) and not closed:
        words = part.rfind(" ", 0, same + 1)
        same = max(part.rfind(mark, 0, same) + 1 for mark in _SENTENCE_ENDS)
        same = max(same, words if words >= LONG_QUOTE else 0)
    return same


def _next(part: str, at: int, text: _Text, *, is_last: bool) -> int:
    """Where a part is found behind ``at``; the last part preferably at the end of a line. Below 0 if nowhere."""
    if at >= len(text.joined):
        return at if not part else -1
    end = text.line_end(at)
    if is_last and not part:
        return end
    if is_last and text.joined.endswith(part, at, end):
        return end - len(part)
    return text.joined.find(part, at, at + LONGEST_VALUE + len(part))


def _begins(begin: int, first: str, text: _Text) -> bool:
    """Whether a message that begins at ``begin`` does so in a line or behind a colon or an opening mark."""
    if not first or begin == text.line_start(begin) or begin in text.ticks:
        return True
    return text.joined[:begin].rstrip().endswith(_OPENING)


def _between(bounds: Bounds, text: _Text, count: int) -> Iterator[tuple[int, int]]:
    """The bounds of the holes: between the parts, from the start of a line, to its end."""
    for number, ((left_start, left), (right, right_end)) in enumerate(pairwise(bounds)):
        if number == 0 and left_start == left:
            left = max(text.line_start(right), right - LONGEST_VALUE)
        if right == right_end and number + 2 < count:
            right = left  # two holes side by side: what belongs to which cannot be told
        yield left, right


Reader: TypeAlias = Callable[[str, str, Sequence[str]], Sequence[MessageTable]]
"""Package, release and the files of a traceback → the messages of that release, none if it is not at hand."""
_READERS: list[Reader] = []


def read_with(reader: Reader | None) -> None:
    """Read the messages of the releases that run with ``reader`` from now on; None: only the shipped ones are known."""
    _READERS[:] = [reader] if reader is not None else []


def read_index(package: str, version: str, files: Sequence[str]) -> MessageIndex | None:
    """The messages of a release, read from its source; None if it is not at hand."""
    tables = [table for reader in _READERS for table in reader(package, version, files)]
    return MessageIndex(tables) if tables else None


@cache
def load_index() -> MessageIndex:
    """The index of the shipped files."""
    return MessageIndex(shipped_tables(load_texts(SAID), load_texts(REST)))


def shipped_tables(said: Mapping[str, str], rest: Mapping[str, str]) -> Iterator[MessageTable]:
    """The table of each package, of which only what it says is read."""
    return (MessageTable(text, partial(rest.__getitem__, package)) for package, text in said.items())
