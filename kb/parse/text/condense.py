"""A text of any length, read once → its lines that matter, each with its own number. Memory does not grow with it.

Kept are the head (where a configuration is printed), the tail (where a run fails), and of what is between:

- lines unlike any before, whatever they say: their digits aside, most lines of a log repeat each other. Those that
  speak of failures and restarts come first, for all ranks, with their neighbours;
- of each stretch the rows with the least and the greatest value of the usual metrics, the first and the last that is
  not finite, and one as a sample. Stretches grow with the text, so the outline of a curve is right at any length.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, pairwise
from math import isfinite
from typing import AnyStr

from trainmedic.kb.data_files import load_table
from trainmedic.kb.lazy import regex
from trainmedic.kb.parse.text.line_blocks import LineReader, cut

LONGEST_BETWEEN = 16 * 1024
"""Bytes of a line that is kept between head and tail."""
_MOST_SHAPES = 100_000
_ALIKE, _ALIKE_FAILING = 4, 64
"""Lines kept that are alike, and that are alike and speak of failures: one for each rank."""
_MOST_BLANK = 16
"""Times the room that a text may have in blank lines before it is taken for one that does not fit."""
_MOST_GROUPS = 10_000
_NEAR = 2
_SHARE = 0.4
"""The most of what is kept between that failures take, and again that rows take."""
_OBJECT = 8 * 1024
"""Bytes in which the braces around a metric that has a line of its own are looked for."""
# What differs between lines that are alike: numbers, and the bars that show progress.
_VARIES = b"0123456789.+-eE%#=>| \t" + bytes((0xE2, 0x96, *range(0x88, 0x90)))
_TABLE = load_table("parse/data/condense.toml")
_WORDS = tuple(word.encode() for word in _TABLE["failures"])
_METRICS = tuple(
    (cue.encode(), regex(rf"{cue}\W{{1,4}}?([-+]?(?:\d++\.?\d*+(?:[eE][-+]?\d++)?|\.\d++|nan|NaN|inf|Inf))".encode()))
    for cue in _TABLE["metrics"]
)
_KEY_MATERIAL = regex(rb"^[\s>]*[A-Za-z0-9+/=]{60,80}\s*$")

Lines = dict[int, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Bytes that are kept of each part."""

    head: int
    between: int
    tail: int

    @property
    def total(self) -> int:
        return self.head + self.between + self.tail

    def within(self, most: int) -> Room:
        """The same shares of at most ``most`` bytes."""
        if most >= self.total:
            return self
        return Room(**{name: getattr(self, name) * most // self.total for name in ("head", "between", "tail")})


ROOM = Room(head=256 * 1024, between=768 * 1024, tail=512 * 1024)


@dataclass(frozen=True, slots=True, kw_only=True)
class Condensed:
    """``numbers`` are those of the lines of ``text``, with that of the end; ``left_out`` lines are not among them.
    ``whole``: no line was cut."""

    text: bytes
    numbers: tuple[int, ...]
    left_out: int
    whole: bool


def bounded(pieces: Iterable[bytes], most: int, room: Room) -> tuple[bytes, int]:
    """A content of up to ``most`` bytes as it is; of a longer one what `condense` keeps, every line at its own place
    with blank ones between, and how many were left out."""
    pieces = iter(pieces)
    start: list[bytes] = []
    size = 0
    for piece in pieces:
        start.append(piece)
        size += len(piece)
        if size > most:
            condensed = condense(chain(_consumed(start), pieces), room)
            return spread(condensed.text.split(b"\n"), condensed.numbers, b"\n"), condensed.left_out
    return b"".join(start), 0


def _consumed(pieces: list[bytes]) -> Iterator[bytes]:
    pieces.reverse()
    while pieces:
        yield pieces.pop()


def spread(lines: Sequence[AnyStr], numbers: Sequence[int], feed: AnyStr) -> AnyStr:
    """Lines at their own places, with blank ones between."""
    breaks = (after - before for before, after in pairwise((1, *numbers)))
    return feed[:0].join(feed * gap + line for gap, line in zip(breaks, lines, strict=True))


def condense(pieces: Iterable[bytes], room: Room) -> Condensed:
    """The lines of a text that comes in ``pieces``. All are kept if those that are not blank fit into the room."""
    reader = LineReader(pieces)
    blocks = iter(reader)
    start: list[bytes] = []
    size = filled = 0
    for block in blocks:
        start.append(block)
        size += len(block)
        filled += len(block) - block.count(b"\n")
        if filled > room.total or size > _MOST_BLANK * room.total:
            first_pass = _Pass(room)
            for each in chain(_consumed(start), blocks):
                first_pass.read(each)
            return first_pass.condensed(cut=reader.cut)
    lines = b"".join(start).split(b"\n")[:-1]
    kept = {number: line for number, line in enumerate(lines, 1) if line or (number > 1 and lines[number - 2])}
    return _condensed(kept, len(lines), 0, cut=reader.cut)


def _condensed(kept: Lines, lines: int, left_out: int, *, cut: bool) -> Condensed:
    numbers = sorted(kept)
    text = b"\n".join([*(kept[number] for number in numbers), b""])
    return Condensed(text=text, numbers=(*numbers, lines + 1), left_out=left_out, whole=not cut)


@dataclass(slots=True)
class _Stretch:
    """The rows kept of a stretch of the text: for each metric and role its value and its lines."""

    rows: dict[tuple[bytes, str], tuple[float, Lines]] = field(default_factory=dict)

    def add(self, key: tuple[bytes, str], value: float, lines: Lines) -> None:
        known = self.rows.get(key)
        if known is None or _is_better(key[1], value, known[0]):
            self.rows[key] = (value, lines)

    def join(self, later: _Stretch) -> None:
        for key, (value, lines) in later.rows.items():
            self.add(key, value, lines)

    @property
    def lines(self) -> Lines:
        return {number: line for _, lines in self.rows.values() for number, line in lines.items()}


def _may_stand_alone(line: bytes) -> bool:
    """Not a line of a private key: no one could tell it for one without the lines around it."""
    return len(line) <= LONGEST_BETWEEN and not _KEY_MATERIAL.match(line)


def _is_better(role: str, value: float, known: float) -> bool:
    return value < known if role == "least" else value > known if role == "greatest" else role == "last"


class _Pass:
    """What is kept of the blocks read so far."""

    def __init__(self, room: Room) -> None:
        self._next = 1
        self._cut = False
        self._room = room
        self._head: Lines = {}
        self._head_size = 0
        self._tail: list[tuple[int, bytes]] = []
        self._tail_size = 0
        self._counts: dict[int, int] = {hash(b""): _ALIKE_FAILING}
        self._frequent: set[int] = set(self._counts)
        self._failing = _Candidates(int(room.between * _SHARE))
        self._other = _Candidates(room.between)
        self._stretches: list[_Stretch] = []
        self._joined = 1
        self._blocks = 0

    def read(self, block: bytes) -> None:
        lines = _Block(self._next, block)
        self._next += lines.count
        self._keep_ends(lines)
        self._keep_unlike(lines)
        self._keep_rows(lines)

    def condensed(self, *, cut: bool) -> Condensed:
        kept, lines = self._kept(), self._next - 1
        return _condensed(kept, lines, lines - len(kept), cut=cut or self._cut)

    def _kept(self) -> Lines:
        kept = dict(self._head)
        room = self._room.between
        self._join()
        rows = {number: line for stretch in self._stretches for number, line in stretch.lines.items()}
        for lines in (self._failing.lines, rows, self._other.lines):
            for number, line in lines.items():
                if number not in kept and (room := room - len(line) - 1) >= 0:
                    kept[number] = line
        return kept | self._last_lines()

    def _keep_ends(self, block: _Block) -> None:
        if self._head_size < self._room.head:
            for number, line in enumerate(block.lines, block.first):
                if not line and not self._head.get(number - 1):
                    continue  # one blank line of many
                self._head_size += len(line) + 1
                if self._head_size > self._room.head:
                    if number == 1:
                        self._head[1] = cut(line, self._room.head)
                        self._cut = len(line) > self._room.head
                    break
                self._head[number] = line
        self._tail.append((block.first, block.content))
        self._tail_size += len(block.content)
        while self._tail and self._tail_size - len(self._tail[0][1]) >= self._room.tail:
            self._tail_size -= len(self._tail.pop(0)[1])

    def _last_lines(self) -> Lines:
        kept: Lines = {}
        room = self._room.tail
        for first, block in reversed(self._tail):
            lines = block[:-1].split(b"\n")
            for number in range(len(lines) - 1, -1, -1):
                room -= len(lines[number]) + 1
                if room < 0:
                    return kept
                kept[first + number] = lines[number]
        return kept

    def _keep_unlike(self, block: _Block) -> None:
        shapes = list(map(hash, block.content.translate(None, _VARIES).split(b"\n")))
        frequent = self._frequent
        new = [at for at, shape in enumerate(shapes) if shape not in frequent]
        if not new:
            return
        lines, counts = block.lines, self._counts
        failing = _speaking_of_failures([lines[at] for at in new])
        for place, at in enumerate(new):
            shape, line = shapes[at], lines[at]
            count = counts.get(shape, 0) + 1
            if count > 1 or len(counts) < _MOST_SHAPES:
                counts[shape] = count
            if count >= _ALIKE_FAILING:
                frequent.add(shape)
            if not line or not _may_stand_alone(line):
                continue
            if place in failing:
                self._failing.add(count, block.around(at, _NEAR))
            elif count <= _ALIKE:
                self._other.add(count, {block.first + at: line})

    def _keep_rows(self, block: _Block) -> None:
        stretch = _Stretch()
        stretch.add((b"", "first"), 0.0, block.around(0, 1))
        for cue, pattern in _METRICS:
            if cue not in block.content:
                continue
            values = [(float(match[1]), match.start()) for match in pattern.finditer(block.content)]
            usual = [item for item in values if isfinite(item[0])]
            if usual:
                least, greatest = min(usual), max(usual)
                stretch.add((cue, "least"), least[0], block.row(least[1]))
                stretch.add((cue, "greatest"), greatest[0], block.row(greatest[1]))
            if len(usual) < len(values):
                broken = [at for value, at in values if not isfinite(value)]
                stretch.add((cue, "broken"), 0.0, block.row(broken[0]))
                stretch.add((cue, "last"), 0.0, block.row(broken[-1]))
        if self._blocks % self._joined:
            self._stretches[-1].join(stretch)
        else:
            self._stretches.append(stretch)
        self._blocks += 1
        if self._blocks % 64 == 0:
            self._join()

    def _join(self) -> None:
        """Make stretches longer by joining pairs, until their rows fit."""
        most = self._room.between * _SHARE
        while sum(_size(stretch.lines) for stretch in self._stretches) > most and len(self._stretches) > 1:
            for earlier, later in zip(self._stretches[::2], self._stretches[1::2], strict=False):
                earlier.join(later)
            del self._stretches[1::2]
            self._joined *= 2


def _size(lines: Lines) -> int:
    return sum(map(len, lines.values())) + len(lines)


class _Block:
    """Whole lines, the first of which has the number ``first``."""

    def __init__(self, first: int, content: bytes) -> None:
        self.first = first
        self.content = content
        self.count = content.count(b"\n")
        self._lines: list[bytes] = []
        self._starts: list[int] = []

    @property
    def lines(self) -> list[bytes]:
        if not self._lines:
            self._lines = self.content.split(b"\n")[:-1]
        return self._lines

    def around(self, at: int, near: int) -> Lines:
        """Line ``at`` (counted from 0) with so many on either side."""
        return self._between(max(0, at - near), at + near)

    def _between(self, begin: int, end: int) -> Lines:
        lines = enumerate(self.lines[begin : end + 1], self.first + begin)
        return {number: line for number, line in lines if _may_stand_alone(line)}

    def row(self, offset: int) -> Lines:
        """The row that a metric at ``offset`` belongs to, with a line on either side: all of an object whose metrics
        have lines of their own."""
        if not self._starts:
            self._starts = [0, *accumulate(len(line) + 1 for line in self.lines)]
        at = bisect_right(self._starts, offset) - 1
        line = self.lines[at].strip()
        if line[:1] != b'"' or b"{" in line:
            return self.around(at, 1)
        opened = self.content.rfind(b"{", max(0, offset - _OBJECT), offset)
        closed = self.content.find(b"}", offset, offset + _OBJECT)
        if opened < 0 or closed < 0:
            return self.around(at, 1)
        begin, end = (bisect_right(self._starts, place) - 1 for place in (opened, closed))
        return self._between(begin, end)


class _Candidates:
    """Lines that may be kept, at most ``most`` bytes: of lines that are alike the first ones, then the earliest."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._groups: list[tuple[int, int, int, Lines]] = []
        self._size = 0

    def add(self, count: int, lines: Lines) -> None:
        """``lines`` around one that is number ``count`` of its like."""
        size = _size(lines)
        self._groups.append((count, next(iter(lines), 0), size, lines))
        self._size += size
        if self._size > 2 * self._most or len(self._groups) > 2 * _MOST_GROUPS:
            self._shrink()

    @property
    def lines(self) -> Lines:
        self._shrink()
        return {number: line for *_, lines in self._groups for number, line in lines.items()}

    def _shrink(self) -> None:
        self._groups.sort(key=lambda group: group[:2])
        sizes = accumulate(size for _, _, size, _ in self._groups)
        self._groups = [group for group, size in zip(self._groups, sizes, strict=True) if size <= self._most]
        del self._groups[_MOST_GROUPS:]
        self._size = sum(size for _, _, size, _ in self._groups)


def _speaking_of_failures(lines: Sequence[bytes]) -> set[int]:
    """Which of the lines have a word of failures or restarts."""
    text = b"\n".join(lines).lower()
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    found: set[int] = set()
    for word in _WORDS:
        at = text.find(word)
        while at >= 0:
            line = bisect_right(starts, at) - 1
            found.add(line)
            at = text.find(word, starts[line + 1])
    return found
