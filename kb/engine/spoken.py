"""Which of many conditions some evidence may decide, found by what it says instead of by asking each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from trainmedic.kb.engine.expressions import Expression
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.said import Shape
from trainmedic.kb.engine.silence import said_by
from trainmedic.kb.engine.values import UNKNOWN

T = TypeVar("T")


class ConditionIndex(Generic[T]):
    """Things with a condition each, or with None: code, which must be asked."""

    def __init__(self, things: Sequence[T], condition: Callable[[T], Expression | None]) -> None:
        self._things = things
        self._conditions = [condition(thing) for thing in things]
        self._by_mark: dict[str, list[int]] = {}
        for number, expression in enumerate(self._conditions):
            for mark in expression.marks if expression is not None else ():
                self._by_mark.setdefault(mark, []).append(number)
        self._decided: dict[Shape, list[int]] = {}

    def decidable(self, facts: Facts) -> Iterator[T]:
        """In order, all but those of which the evidence says nothing and which therefore cannot be told."""
        said = said_by(facts)
        if said.shape not in self._decided:
            self._decided[said.shape] = list(self._decided_in_silence(said.shape))
        numbers = set(self._decided[said.shape])
        for mark in self._by_mark.keys() & said.marks:
            numbers.update(self._by_mark[mark])
        return map(self._things.__getitem__, sorted(numbers))

    def _decided_in_silence(self, shape: Shape) -> Iterator[int]:
        for number, expression in enumerate(self._conditions):
            try:
                cannot_tell = expression is not None and expression.on_silence(shape) is UNKNOWN
            except Exception:  # whoever asks it will report it
                cannot_tell = False
            if not cannot_tell:
                yield number
