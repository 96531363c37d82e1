"""Where text stands: `Piece` is a stretch of a source that a reader reads, `LineIndex` finds its lines.

Of a text over `Limits` the lines are kept that matter (`kb.parse.text.condense`); a piece knows the number of each, and
the others are blank in `Source.text`, so every line number stays the user's.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from trainmedic.kb.model.evidence import Call, CodeFlaw, Problem
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.run import Option
from trainmedic.kb.parse.text.condense import ROOM, Room


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much is kept of what is read, in bytes: ``room`` of each input, ``total`` of all together."""

    attachments: int = 64
    room: Room = ROOM
    total: int = 8 * 1024 * 1024


def numbered(text: str) -> Iterator[tuple[int, str]]:
    """Each line with the offset at which it starts."""
    offset = 0
    for line in text.split("\n"):
        yield offset, line
        offset += len(line) + 1


class LineIndex:
    """Offsets of a text → 1-based (line, column), in O(log lines) after one pass."""

    __slots__ = ("starts",)

    def __init__(self, text: str) -> None:
        self.starts = [0]
        self.starts.extend(match.end() for match in re.finditer("\n", text))

    def line(self, offset: int) -> int:
        """0-based index of the line that holds ``offset``."""
        return bisect_right(self.starts, offset) - 1

    def start(self, line: int) -> int:
        return self.starts[line]

    def position(self, offset: int) -> tuple[int, int]:
        """1-based (line, column) of ``offset``."""
        line = self.line(offset)
        return line + 1, offset - self.starts[line] + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A stretch of a source that one reader reads, and where it stands.

    ``line`` and ``column`` are the user's position of the first character. ``prefixes`` (empty, or one per line of
    ``text``) is what was taken off the front of each line (indentation, ``> ``, ``$ ``); the first one is already
    counted in ``column``. ``numbers`` (empty, or one per line of ``text``) are the user's lines where some between them
    were left out. `span` gives positions and text in the user's source, prefixes included.
    """

    source: str | None
    text: str
    line: int = 1
    column: int = 1
    prefixes: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    _index: list[LineIndex] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def index(self) -> LineIndex:
        if not self._index:
            self._index.append(LineIndex(self.text))
        return self._index[0]

    def position(self, offset: int) -> tuple[int, int]:
        """The user's (line, column) of a code point offset into ``text``; offsets outside are clamped."""
        offset = min(max(offset, 0), len(self.text))
        index = self.index.line(offset)
        return self.number(index), offset - self.index.start(index) + self._offset(index)

    def number(self, index: int) -> int:
        """The user's number of the 0-based line ``index``."""
        return self.numbers[index] if self.numbers else self.line + index

    def span(self, start: int, end: int, *, default: bool = False) -> Span:
        """The user's span of ``text[start:end]`` (code point offsets, end exclusive, clamped to the text)."""
        size = len(self.text)
        start = 0 if start < 0 else start if start < size else size
        end = start if end < start else end if end < size else size
        starts, first_column = self.index.starts, self.column
        first = bisect_right(starts, start) - 1
        if first:
            first_column = 1 + len(self.prefixes[first]) if self.prefixes else 1
        column = start - starts[first] + first_column
        if first + 1 == len(starts) or end < starts[first + 1]:  # one bisection: this is the hottest place of parsing
            line = self.numbers[first] if self.numbers else self.line + first
            return Span(
                attachment=self.source,
                line=line,
                column=column,
                end_line=line,
                end_column=column + end - start,
                text=self.text[start:end],
                default=default,
            )
        last = bisect_right(starts, end) - 1
        return Span(
            attachment=self.source,
            line=self.number(first),
            column=column,
            end_line=self.number(last),
            end_column=end - starts[last] + self._offset(last),
            text=self._written(start, end),
            default=default,
        )

    def _offset(self, index: int) -> int:
        """The user's column of the first character of the 0-based line ``index``."""
        if index == 0:
            return self.column
        return 1 + len(self.prefixes[index]) if self.prefixes else 1

    def cut(self, start: int, end: int) -> Piece:
        """``text[start:end]`` as a piece with its own position."""
        line, column = self.position(start)
        prefixes: tuple[str, ...] = ()
        numbers: tuple[int, ...] = ()
        if self.prefixes or self.numbers:
            lines = slice(self.index.line(start), self.index.line(end) + 1)
            prefixes, numbers = self.prefixes[lines], self.numbers[lines]
        text = self.text[start:end]
        return Piece(source=self.source, text=text, line=line, column=column, prefixes=prefixes, numbers=numbers)

    def without(self, taken: Sequence[int]) -> Piece:
        """Each line without so many characters at its front."""
        lines = self.text.split("\n")
        before = self.prefixes or ("",) * len(lines)
        return Piece(
            source=self.source,
            text="\n".join(line[count:] for line, count in zip(lines, taken, strict=True)),
            line=self.line,
            column=self.column + taken[0],
            prefixes=tuple(old + line[:count] for old, line, count in zip(before, lines, taken, strict=True)),
            numbers=self.numbers,
        )

    def _written(self, start: int, end: int) -> str:
        part = self.text[start:end]
        if not self.prefixes or "\n" not in part:
            return part
        first = self.index.line(start)
        lines = part.split("\n")
        return "\n".join([lines[0], *(self.prefixes[first + n] + line for n, line in enumerate(lines[1:], 1))])


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A reader's result: options in the order written, problems, whether it is cut off; Python's calls and flaws."""

    options: tuple[Option, ...] = ()
    problems: tuple[Problem, ...] = ()
    partial: bool = False
    calls: tuple[Call, ...] = ()
    flaws: tuple[CodeFlaw, ...] = ()
