"""Shared by the tests of the readers: read a text, and look at one aspect of the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from trainmedic.kb.model.place import Span
from trainmedic.kb.model.run import Option
from trainmedic.kb.parse.source import Piece, Reading


def true_span(span: Span, text: str) -> bool:
    """Whether a span of ``text`` lies in it and holds exactly the text at its place."""
    lines = list(_lines(text)[span.line - 1 : span.end_line])
    lines[-1] = lines[-1][: span.end_column - 1]
    lines[0] = lines[0][span.column - 1 :]
    return "\n".join(lines) == span.text


@lru_cache(maxsize=1)
def _lines(text: str) -> tuple[str, ...]:
    return tuple(text.split("\n"))


@dataclass(frozen=True)
class Checked:
    """A reader, every result of which is checked for true spans."""

    reader: Callable[[Piece], Reading]

    def read(self, text: str) -> Reading:
        """Read ``text`` and check all positions."""
        reading = self.reader(Piece(source="f", text=text))
        spans = [span for option in reading.options for span in (option.span, option.key_span, option.value_span)]
        spans += [problem.span for problem in reading.problems]
        assert all(span is None or true_span(span, text) for span in spans)
        return reading

    def values(self, text: str) -> dict[str, object]:
        """Key → value of all options."""
        return {option.key: option.value for option in self.read(text).options}

    def only(self, text: str, key: str) -> Option:
        """The one option called ``key``."""
        (option,) = [option for option in self.read(text).options if option.key == key]
        return option

    def codes(self, text: str) -> set[str]:
        """The codes of all problems."""
        return {problem.code for problem in self.read(text).problems}
