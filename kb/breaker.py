"""A circuit breaker: after several failures in a row, calls are refused for a while. Knows no network, only a clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

State = Literal["closed", "open", "half_open"]


class Breaker:
    """Closed: calls go through. Open: they are refused for ``rest_s`` seconds. Half open: one call may try.

    Not locked, and no method waits. Results are reported with the number from `admit`, because a call that started
    before the breaker opened says nothing about the trial that is under way.
    """

    def __init__(self, clock: Callable[[], float], *, failures: int = 3, rest_s: float = 30.0) -> None:
        self._clock = clock
        self._threshold = failures
        self._rest_s = rest_s
        self._failures = 0
        self._opened: float | None = None
        self._calls = 0
        self._trial = 0
        """The number of the trial that is under way; 0 if there is none."""

    @property
    def state(self) -> State:
        """The state at this moment."""
        if self._opened is None:
            return "closed"
        return "half_open" if self._clock() - self._opened >= self._rest_s else "open"

    def admit(self) -> int:
        """A number for the call, or 0 if it is refused. While half open, only one call is admitted."""
        state = self.state
        if state == "open" or (state == "half_open" and self._trial):
            return 0
        self._calls += 1
        if state == "half_open":
            self._trial = self._calls
        return self._calls

    def succeeded(self) -> None:
        """Any call succeeded: the other side works."""
        self._failures, self._opened, self._trial = 0, None, 0

    def failed(self, call: int) -> None:
        """A call failed in a way that suggests the next one would too."""
        self._failures += 1
        if call == self._trial:
            self._trial, self._opened = 0, self._clock()
        elif self._opened is None and self._failures >= self._threshold:
            self._opened = self._clock()

    def abandoned(self, call: int) -> None:
        """The caller cancelled the call, which says nothing about the other side."""
        if call == self._trial:
            self._trial = 0
