"""How much of an input has been read, for whoever waits for it.

A context variable, because the caller that waits is many calls away from the loop that reads; without an observer
nothing is reported. What is read does not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

Observer = Callable[[int, int], None]
"""Called with the bytes read so far and the bytes of all inputs."""
observer: ContextVar[Observer | None] = ContextVar("reading_observer", default=None)


class ReadingProgress:
    """Counts one reading. Sizes of decoded text are in characters, which is near enough for a progress line."""

    __slots__ = ("_done", "_report", "_total")

    def __init__(self, total: int) -> None:
        self._report = observer.get()
        self._total = total
        self._done = 0

    def within(self, position: int) -> None:
        """The reader is at this position of the current part."""
        if self._report is not None:
            self._report(self._done + position, self._total)

    def finish(self, size: int) -> None:
        """A part of this size has been read."""
        self._done += size
        self.within(0)
