"""The indexed messages of one package, as `kb.sources.messages` writes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from trainmedic.kb.error_messages.template import split
from trainmedic.kb.versions import version_key

LOGGED = ("warning", "error", "print")
"""Kinds that are printed or logged; all others end the run unless somebody catches them."""


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
    """One package's messages, read when one of them is needed."""

    def __init__(self, read: Callable[[], str]) -> None:
        self._read = read

    @cached_property
    def _content(self) -> Mapping[str, Any]:
        content: Mapping[str, Any] = json.loads(self._read())
        return content

    @property
    def package(self) -> str:
        return str(self._content["package"])

    @property
    def releases(self) -> Sequence[str]:
        """The releases read, lowest first."""
        releases: Sequence[str] = self._content["releases"]
        return releases

    def __len__(self) -> int:
        return len(self._content["messages"])

    def anchors(self) -> list[str]:
        """The stretch of text by which each message is looked up, in the order of the messages."""
        return [row[0][row[2] : row[2] + row[3]] for row in self._content["messages"]]

    def template(self, number: int) -> tuple[str, int]:
        """A message's template, and where its anchor begins in it."""
        row = self._content["messages"][number]
        return row[0], row[2]

    def entry(self, number: int) -> Entry:
        content = self._content
        template, kind, _, _, first, last, *places = content["messages"][number]
        return Entry(
            package=self.package,
            template=template,
            kind=content["kinds"][kind],
            first=content["releases"][first],
            last=content["releases"][last],
            places=tuple(
                Place(content["files"][file], line, content["functions"][function], condition)
                for file, line, function, condition in places
            ),
            is_newest=last == len(content["releases"]) - 1,
            is_oldest=first == 0,
        )
