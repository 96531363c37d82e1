"""A circuit breaker: what failed several times running is not asked for a while. Knows no network, only a clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

State = Literal["closed", "open", "half_open"]


class Breaker:
    """Closed: calls go through. Open: they are refused for ``rest_s`` seconds. Half open: one of them may try.

    Meant for one event loop; its methods never wait. How a call went is told with the number that `admit` gave it: one
    that was let through before the breaker opened says nothing about the trial that runs now.
    """

    def __init__(self, clock: Callable[[], float], *, failures: int = 3, rest_s: float = 30.0) -> None:
        self._clock = clock
        self._most = failures
        self._rest_s = rest_s
        self._failed = 0
        self._opened: float | None = None
        self._calls = 0
        self._trial = 0
        """The number of the call that tries now, 0: none does."""

    @property
    def state(self) -> State:
        """Where the breaker stands now."""
        if self._opened is None:
            return "closed"
        return "half_open" if self._clock() - self._opened >= self._rest_s else "open"

    def admit(self) -> int:
        """The number of a call that may be made, 0 where it may not. In the half-open state only the first may."""
        state = self.state
        if state == "open" or (state == "half_open" and self._trial):
            return 0
        self._calls += 1
        if state == "half_open":
            self._trial = self._calls
        return self._calls

    def succeeded(self) -> None:
        """A call came back as it should, whichever it was: the other side is there."""
        self._failed, self._opened, self._trial = 0, None, 0

    def failed(self, call: int) -> None:
        """A call failed in a way that the next one would too."""
        self._failed += 1
        if call == self._trial:
            self._trial, self._opened = 0, self._clock()
        elif self._opened is None and self._failed >= self._most:
            self._opened = self._clock()

    def abandoned(self, call: int) -> None:
        """A call was given up by whoever asked: that says nothing about the other side."""
        if call == self._trial:
            self._trial = 0
