"""Excerpts of the user's own text around the lines of a finding, with the exact spans marked. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trainmedic.kb.model.place import Span

CONTEXT = 2
"""Lines shown before and after a marked one."""
MAX_MARKED = 6
"""Marked lines in one excerpt."""
WIDEST = 320
"""Code points shown of one line; log lines can be far longer."""
BEFORE = 80
"""Code points kept before the mark if a line is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a line. ``mark``: ``first`` for the finding's main place, ``more`` for its other ones."""

    text: str
    mark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of an excerpt; a ``gap`` replaces omitted lines."""

    number: int = 0
    pieces: tuple[Piece, ...] = ()
    hit: bool = False
    gap: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """An excerpt of one text.

    ``name`` is None for the question; ``place`` is the first mark's ``line:column``.
    """

    name: str | None
    place: str
    rows: tuple[Row, ...]


def excerpts(spans: Iterable[Span], texts: Mapping[str | None, str]) -> tuple[Excerpt, ...]:
    """One excerpt for each text that the spans point into, without those of defaults; the first with its context.

    If a text is not available (a link to an old answer may lack it), the spans' own text is shown.
    """
    by_name: dict[str | None, list[tuple[str, Span]]] = {}
    mark = "first"
    for span in spans:
        if not span.default:
            by_name.setdefault(span.attachment, []).append((mark, span))
            mark = "more"
    contexts = (CONTEXT, *(0 for _ in by_name))
    return tuple(
        _excerpt(name, marked, texts.get(name), context)
        for (name, marked), context in zip(by_name.items(), contexts, strict=False)
    )


def _excerpt(name: str | None, marked: Sequence[tuple[str, Span]], text: str | None, context: int) -> Excerpt:
    first = marked[0][1]
    place = f"{first.line}:{first.column}"
    lines = text.split("\n") if text is not None else []
    # A file sent again under the same name may be shorter than the one that the span is from.
    if text is None or any(span.line > len(lines) for _, span in marked):
        return Excerpt(name=name, place=place, rows=tuple(_quoted(mark, span) for mark, span in marked[:MAX_MARKED]))
    hits = _hits(marked, lines)
    rows: list[Row] = []
    before = 0
    for number in sorted({n for hit in hits for n in range(hit - context, hit + context + 1) if 1 <= n <= len(lines)}):
        if number not in hits and not lines[number - 1].strip() and number in (1, len(lines)):
            continue  # a blank line at either end says nothing
        if before and number > before + 1:
            rows.append(Row(gap=True))
        before = number
        marks = hits.get(number, [])
        rows.append(Row(number=number, pieces=_pieces(lines[number - 1], marks), hit=bool(marks)))
    return Excerpt(name=name, place=place, rows=tuple(rows))


def _hits(marked: Sequence[tuple[str, Span]], lines: Sequence[str]) -> dict[int, list[tuple[int, int, str]]]:
    """For each marked line its ranges (start, end, mark), 0-based, of at most `MAX_MARKED` lines."""
    hits: dict[int, list[tuple[int, int, str]]] = {}
    for mark, span in marked:
        for number in range(span.line, min(span.end_line, len(lines)) + 1):
            if number not in hits and len(hits) >= MAX_MARKED:
                return hits
            line = lines[number - 1]
            start = span.column - 1 if number == span.line else len(line) - len(line.lstrip())
            end = span.end_column - 1 if number == span.end_line else len(line)
            hits.setdefault(number, []).append((max(0, start), min(len(line), end), mark))
    return hits


def _pieces(line: str, marks: Sequence[tuple[int, int, str]]) -> tuple[Piece, ...]:
    start = max(0, min((begin for begin, _, _ in marks), default=0) - BEFORE) if len(line) > WIDEST else 0
    stop = min(len(line), start + WIDEST)
    pieces = [Piece(text="…")] if start else []
    at = start
    for begin, end, mark in sorted(marks):
        # Marks may overlap: the part that is marked already is skipped.
        begin, end = max(at, begin), min(stop, end)
        if begin >= end:
            continue
        if begin > at:
            pieces.append(Piece(text=line[at:begin]))
        pieces.append(Piece(text=line[begin:end], mark=mark))
        at = end
    if at < stop:
        pieces.append(Piece(text=line[at:stop]))
    if stop < len(line):
        pieces.append(Piece(text="…"))
    return tuple(pieces)


def _quoted(mark: str, span: Span) -> Row:
    text = " ".join(span.text.split())[:WIDEST]
    return Row(number=span.line, pieces=(Piece(text=text, mark=mark),), hit=True)
