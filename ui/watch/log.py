"""The text of a run so far, its beginning and its end, bounded. Pure."""

from __future__ import annotations

from collections import deque

HEAD_LINES = 600
TAIL_LINES = 2_400
"""Lines kept from the beginning (the configuration is printed there) and from the end."""
MAX_LINE = 8_000
"""Code points kept of one line: progress bars rewrite theirs thousands of times."""


class Log:
    """Grows by pieces that may end in the middle of a line."""

    def __init__(self) -> None:
        self._head: list[str] = []
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._open = ""
        self._lines = 0

    @property
    def lines(self) -> int:
        """Complete lines so far."""
        return self._lines

    def add(self, text: str) -> str:
        """Take a piece; the complete lines that it brought, as one text."""
        *done, self._open = (self._open + text).split("\n")
        self._open = _shown(self._open)[-MAX_LINE:]
        kept = [_shown(line)[:MAX_LINE] for line in done]
        for line in kept:
            if len(self._head) < HEAD_LINES:
                self._head.append(line)
            else:
                self._tail.append(line)
        self._lines += len(kept)
        return "\n".join(kept)

    def end(self) -> str:
        """Nothing more comes: the last line counts even without its line break."""
        return self.add("\n") if self._open else ""

    def recent(self) -> str:
        """What is kept, without the lines left out between."""
        return "\n".join((*self._head, *self._tail))

    def whole(self) -> str:
        """What is kept; empty lines stand for those left out, so that every line has its number."""
        missing = self._lines - len(self._head) - len(self._tail)
        return "\n".join((*self._head, *[""] * missing, *self._tail))


def _shown(line: str) -> str:
    """What a terminal shows of a line: the text after the last carriage return that something follows."""
    return line.rstrip("\r").rpartition("\r")[2]
