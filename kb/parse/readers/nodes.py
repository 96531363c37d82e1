"""Nodes of the configuration readers (leaves, lists, entries with offsets), and how that becomes `Option` values.

Nested entries become dotted keys (``zero_optimization.stage``), lists of scalars one tuple, entries inside lists get
the index as a part of the key (``datasets.0.path``). Work is bounded: an alias bomb ends at `MOST_NODES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from trainmedic.kb.model.evidence import Call, CodeFlaw, Problem
from trainmedic.kb.model.run import Option, Origin, Unresolved, Value
from trainmedic.kb.parse.source import Piece, Reading

MOST_OPTIONS = 4000
LONGEST_INTEGER = 300
"""Digits of a whole number. A longer one stays text: no float can hold it, and arithmetic and printing fail on it."""
MOST_NODES = 20000
DEEPEST = 48


@dataclass(slots=True, kw_only=True)
class Leaf:
    """One scalar at ``[start, end)``; quotation marks are inside the range and not in ``raw``."""

    start: int
    end: int
    value: Value
    raw: str
    quoted: bool = False


@dataclass(slots=True, kw_only=True)
class Items:
    start: int
    end: int
    items: list[Node] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Pair:
    """One entry; ``[start, end)`` is the key's range."""

    key: str
    start: int
    end: int
    value: Node


@dataclass(slots=True, kw_only=True)
class Entries:
    """A mapping, or the keyword arguments of a call to ``name``."""

    start: int
    end: int
    pairs: list[Pair] = field(default_factory=list)
    name: str = ""


Node: TypeAlias = "Leaf | Items | Entries"
Flaw: TypeAlias = tuple[str, str, int, int]
"""Code, message, start and end of something that could not be read."""


class Flattener:
    """Nodes → options of one piece. ``place`` takes an offset of the nodes to the one in the user's text."""

    def __init__(self, piece: Piece, origin: Origin, *, place: Callable[[int], int] | None = None) -> None:
        self.piece = piece
        self.origin = origin
        self.place = place or (lambda offset: offset)
        self.options: list[Option] = []
        self.problems: list[Problem] = []
        self.visited = 0
        self.full = False

    def add(self, node: Node, scope: str = "", prefix: str = "", depth: int = 0) -> None:
        """Append the options below ``node``, whose own key is ``prefix``."""
        if depth > DEEPEST or self._spent():
            self._stop(node)
        elif isinstance(node, Entries):
            self._entries(node, scope, prefix, depth)
        elif isinstance(node, Items):
            for number, item in enumerate(node.items):
                if isinstance(item, Entries | Items):
                    self.add(item, scope, f"{prefix}{number}.", depth + 1)

    def _entries(self, node: Entries, scope: str, prefix: str, depth: int) -> None:
        seen: set[str] = set()
        for pair in node.pairs:
            key = prefix + pair.key
            if key in seen:
                self.problem(
                    "duplicate_key", f"{key} is written more than once; the last one counts", pair.start, pair.end
                )
            seen.add(key)
            value = pair.value
            holds_entries = isinstance(value, Items) and any(isinstance(item, Entries) for item in value.items)
            if holds_entries or (isinstance(value, Entries) and value.pairs):
                self.add(value, scope, f"{key}.", depth + 1)
            elif self._spent():
                self._stop(value)
            else:
                self.option(pair, key, scope)
            if self.full:
                return

    def arguments(self, pairs: Iterable[Pair], scope: str) -> tuple[Option, ...]:
        """One option for each pair, nested values as mappings; they are not kept."""
        begin = len(self.options)
        for pair in pairs:
            self.option(pair, pair.key, scope)
        arguments = tuple(self.options[begin:])
        del self.options[begin:]
        return arguments

    def option(self, pair: Pair, key: str, scope: str) -> None:
        node = pair.value
        start, end = self.place(node.start), self.place(node.end)
        key_start, key_end = self.place(pair.start), self.place(pair.end)
        raw = node.raw if isinstance(node, Leaf) else self.piece.text[start:end]
        value = self.value(node)
        if self.full:
            return
        whole_start, whole_end = (key_start, end) if start >= key_end else (key_start, key_end)
        self.options.append(
            Option(
                key=key,
                value=value,
                raw=raw,
                span=self.piece.span(whole_start, whole_end),
                key_span=self.piece.span(key_start, key_end),
                value_span=self.piece.span(start, end),
                origin=self.origin,
                scope=scope,
                quoted=isinstance(node, Leaf) and node.quoted,
            )
        )

    def value(self, node: Node, depth: int = 0) -> Value:
        if depth > DEEPEST or self._spent():
            self._stop(node)
            return None
        if isinstance(node, Leaf):
            return node.value
        if isinstance(node, Items):
            return tuple(self.value(item, depth + 1) for item in node.items if not self.full)
        return MappingProxyType({pair.key: self.value(pair.value, depth + 1) for pair in node.pairs if not self.full})

    def problem(self, code: str, message: str, start: int, end: int) -> None:
        """Record something that could not be read."""
        span = self.piece.span(self.place(start), self.place(end))
        self.problems.append(Problem(code=code, message=message, span=span))

    def flaws(self, flaws: Iterable[Flaw]) -> None:
        for flaw in flaws:
            self.problem(*flaw)

    def reading(self, *, partial: bool, calls: Iterable[Call] = (), flaws: Iterable[CodeFlaw] = ()) -> Reading:
        """All that was added; ``partial`` if the text holds more."""
        return Reading(
            options=tuple(self.options),
            problems=tuple(self.problems),
            partial=partial or self.full,
            calls=tuple(calls),
            flaws=tuple(flaws),
        )

    def _spent(self) -> bool:
        self.visited += 1
        return self.full or self.visited > MOST_NODES or len(self.options) >= MOST_OPTIONS

    def _stop(self, node: Node) -> None:
        if not self.full:
            self.problem(
                "too_large", "more options or deeper nesting than is read; the rest is left out", node.start, node.start
            )
        self.full = True


def leaf(text: str, start: int, end: int, value: Value) -> Leaf:
    """An unquoted leaf that is written as ``text[start:end]``."""
    return Leaf(start=start, end=end, value=value, raw=text[start:end])


def unresolved(text: str, start: int, end: int) -> Leaf:
    """A leaf whose value is not in the text."""
    return leaf(text, start, end, Unresolved(text[start:end]))


def deepest_bracket(text: str) -> int:
    """The deepest nesting of brackets and of signs in a row, which drives a recursive parser deep."""
    deepest = depth = run = 0
    for char in text:
        if char in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in ")]}":
            depth = max(0, depth - 1)
        run = run + 1 if char in "-+~*.:" else 0 if not char.isspace() else run
        deepest = max(deepest, run)
    return deepest
