"""The text of a run so far, its beginning and its end, bounded. Pure."""

from __future__ import annotations

from collections import deque

HEAD_LINES = 600
TAIL_LINES = 2_400
"""Lines kept from the beginning (the configuration is printed there) and from the end."""
MAX_LINE = 8_000
"""Code points kept of one line: progress bars rewrite theirs thousands of times."""


class Log:
    """Grows by pieces, which may end in the middle of a line."""

    def __init__(self) -> None:
        self._head: list[str] = []
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._open = ""
        self._lines = 0

    def copy(self) -> Log:
        other = Log()
        other._head, other._tail, other._open = self._head.copy(), self._tail.copy(), self._open
        other._lines = self._lines
        return other

    @property
    def lines(self) -> int:
        """Complete lines so far."""
        return self._lines

    def add(self, text: str) -> str:
        """Add a piece; returns the lines that it completed, as one text."""
        *done, self._open = (self._open + text).split("\n")
        # A progress bar never ends its line: without this the open line would grow for hours.
        self._open = _displayed(self._open)[-MAX_LINE:]
        lines = [_displayed(line)[:MAX_LINE] for line in done]
        for line in lines:
            if len(self._head) < HEAD_LINES:
                self._head.append(line)
            else:
                self._tail.append(line)
        self._lines += len(lines)
        return "\n".join(lines)

    def end(self) -> str:
        """Count the last line even without a line break."""
        return self.add("\n") if self._open else ""

    def recent(self) -> str:
        """The head and the tail, without a gap."""
        return "\n".join((*self._head, *self._tail))

    def whole(self, *, after: int = 0) -> str:
        """The head and the tail, with empty lines between, so that line numbers are right.

        The first ``after`` lines of `recent` are empty too.
        """
        missing = self._lines - len(self._head) - len(self._tail)
        head = [line if number >= after else "" for number, line in enumerate(self._head)]
        cut = max(after - len(self._head), 0)
        tail = [line if number >= cut else "" for number, line in enumerate(self._tail)]
        return "\n".join((*head, *[""] * missing, *tail))


def _displayed(line: str) -> str:
    """The line as a terminal displays it: from its last carriage return on."""
    return line.rstrip("\r").rpartition("\r")[2]
