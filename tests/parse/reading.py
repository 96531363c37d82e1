"""What the tests of every reader share: read a text, and check that every span holds what stands in its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trainmedic.kb.model.run import Option
from trainmedic.kb.parse.source import Piece, Reading


@dataclass(frozen=True)
class Checked:
    """A reader, every result of which is checked."""

    reader: Callable[[Piece], Reading]

    def read(self, text: str) -> Reading:
        """Read ``text`` and check that every span says where it stands and holds what stands there."""
        reading = self.reader(Piece(source="f", text=text))
        lines = text.split("\n")
        spans = [s for o in reading.options for s in (o.span, o.key_span, o.value_span) if s is not None]
        for span in [*spans, *(p.span for p in reading.problems if p.span is not None)]:
            part = lines[span.line - 1 : span.end_line]
            part[-1] = part[-1][: span.end_column - 1]
            part[0] = part[0][span.column - 1 :]
            assert "\n".join(part) == span.text
        return reading

    def values(self, text: str) -> dict[str, object]:
        """Key → value of everything read."""
        return {option.key: option.value for option in self.read(text).options}

    def only(self, text: str, key: str) -> Option:
        """The one option called ``key``."""
        (found,) = [option for option in self.read(text).options if option.key == key]
        return found

    def codes(self, text: str) -> set[str]:
        """The codes of all problems."""
        return {problem.code for problem in self.read(text).problems}
