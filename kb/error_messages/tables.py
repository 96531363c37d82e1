"""The messages of one package, of all releases that were read or of one, and the text that they are kept as."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

from trainmedic.kb.error_messages.template import split
from trainmedic.kb.versions import version_key

LOGGED = ("warning", "error", "print")
"""Kinds that are printed or logged; all others end the run unless someone catches them."""
_PLACE = ("file", "line", "function", "condition")
BETWEEN = "\f"
_SAME = 0


@dataclass(frozen=True, slots=True)
class Place:
    """Where a message is in the last release that has it, and the condition under which it is reached."""

    file: str
    line: int
    function: str
    condition: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One message of a package. ``first`` and ``last`` are the first and last release read that have it; ``is_oldest``
    and ``is_newest``: they are the first and the last that were read."""

    package: str
    template: str
    kind: str
    first: str
    last: str
    places: tuple[Place, ...]
    is_newest: bool
    is_oldest: bool = False

    @property
    def literal(self) -> str:
        """The literal text, a space for each hole."""
        return " ".join(part for part in split(self.template)[0] if part)

    @property
    def exception(self) -> str:
        """The exception's name as a traceback prints it; empty if the message is only logged."""
        return "AssertionError" if self.kind == "assert" else "" if self.kind in LOGGED else self.kind

    def includes(self, version: str) -> bool | None:
        """Whether a release lies between the first and the last that have the message; None if it is older than all
        that were read. Of a minor version one release stands for the others."""
        key = version_key(version)
        if key.release[:2] > version_key(self.last).release[:2] and not self.is_newest:
            return False
        if key.release[:2] < version_key(self.first).release[:2]:
            return None if self.is_oldest else False
        return True


class MessageTable:
    """One package's messages: what they are looked up by, and the rest, which is read when one of them is found."""

    def __init__(self, said: str, rest: Callable[[], str]) -> None:
        content = json.loads(said)
        self.package: str = content["package"]
        self.releases: Sequence[str] = content["releases"]
        self._templates: Sequence[str] = content["templates"]
        self._at: Sequence[int] = content["at"]
        self._words: Sequence[int] = content["words"]
        self._read_rest = rest

    @classmethod
    def of(cls, text: str) -> MessageTable:
        """Of both texts in one, as `table_text` joins them."""
        said, _, rest = text.partition(BETWEEN)
        return cls(said, lambda: rest)

    @cached_property
    def _rest(self) -> Mapping[str, Sequence[Any]]:
        rest: dict[str, list[Any]] = json.loads(self._read_rest())
        for column in ("file", "function"):
            rest[column] = list(accumulate(rest[column], lambda before, now: before if now == _SAME else now))
        return {**rest, "line": list(accumulate(rest["line"])), "end": list(accumulate(rest["places"]))}

    def __len__(self) -> int:
        return len(self._templates)

    def __iter__(self) -> Iterator[Entry]:
        return map(self.entry, range(len(self)))

    def anchors(self) -> list[str]:
        """The stretch of text by which each message is looked up, in the order of the messages."""
        return [
            " ".join(template.split(" ", at + words)[at : at + words]) if words >= 0 else _name(template, at)
            for template, at, words in zip(self._templates, self._at, self._words, strict=True)
        ]

    def template(self, number: int) -> tuple[str, int]:
        """A message's template, and where its anchor begins in it."""
        template, at = self._templates[number], self._at[number]
        return template, sum(len(word) + 1 for word in template.split(" ", at)[:at])

    def entry(self, number: int) -> Entry:
        rest = self._rest
        first, last, end = (rest[column][number] for column in ("first", "last", "end"))
        columns = (rest[column][end - rest["places"][number] : end] for column in _PLACE)
        return Entry(
            package=self.package,
            template=self._templates[number],
            kind=rest["kinds"][rest["kind"][number]],
            first=self.releases[first],
            last=self.releases[last],
            places=tuple(map(Place, *columns)),
            is_newest=last == len(self.releases) - 1,
            is_oldest=first == 0,
        )


def _name(template: str, at: int) -> str:
    """The name before the value of ``{name=}``, with its mark."""
    return template.split(" ", at + 1)[at].partition("={")[0] + "="


@dataclass(frozen=True, slots=True)
class Row:
    """A message to write. Its anchor is ``words`` words from the word ``at`` on; -1 is the name before ``=`` in that
    word, 0 no anchor. ``first`` and ``last`` are numbers of releases."""

    template: str
    at: int
    words: int
    kind: str
    first: int
    last: int
    places: Sequence[Place]


def table_text(package: str, releases: Sequence[str], rows: Iterable[Row]) -> str:
    """The text of a package's table: two JSON documents of columns.

    Messages are in the order of their places, so that what a column has is mostly what it had before, or little more:
    this is what makes it small. Kinds are numbers in a list; a file or function that is the one before is 0; a line is
    the distance from the one before.
    """
    rows = sorted(rows, key=lambda row: (row.places[0].file, row.places[0].line, row.template, row.kind))
    places = [place for row in rows for place in row.places]
    kinds = sorted({row.kind for row in rows})
    lines = [place.line for place in places]
    said = {
        **{"package": package, "releases": releases, "at": [row.at for row in rows]},
        **{"words": [row.words for row in rows], "templates": [row.template for row in rows]},
    }
    rest = {
        **{"kinds": kinds, "kind": [kinds.index(row.kind) for row in rows]},
        **{"first": [row.first for row in rows], "last": [row.last for row in rows]},
        **{"places": [len(row.places) for row in rows], "file": _unlike([place.file for place in places])},
        **{"line": [line - before for before, line in pairwise((0, *lines))]},
        **{"function": _unlike([place.function for place in places])},
        **{"condition": [place.condition for place in places]},
    }
    return BETWEEN.join(json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in (said, rest))


def _unlike(values: Sequence[str]) -> list[str | int]:
    return [*values[:1], *(_SAME if value == before else value for before, value in pairwise(values))]
