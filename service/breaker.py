"""A circuit breaker: what failed several times running is not asked for a while. Knows no network, only a clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

State = Literal["closed", "open", "half_open"]


class Breaker:
    """Closed: calls go through. Open: they are refused for ``rest_s`` seconds. Half open: one of them may try.

    Meant for one event loop; its methods never wait.
    """

    def __init__(self, clock: Callable[[], float], *, failures: int = 3, rest_s: float = 30.0) -> None:
        self._clock = clock
        self._most = failures
        self._rest_s = rest_s
        self._failed = 0
        self._opened: float | None = None
        self._trying = False

    @property
    def state(self) -> State:
        """Where the breaker stands now."""
        if self._opened is None:
            return "closed"
        return "half_open" if self._clock() - self._opened >= self._rest_s else "open"

    def admit(self) -> bool:
        """Whether a call may be made. In the half-open state only the first asker may."""
        if self.state == "closed":
            return True
        if self.state == "half_open" and not self._trying:
            self._trying = True
            return True
        return False

    def succeeded(self) -> None:
        """A call came back as it should."""
        self._failed, self._opened, self._trying = 0, None, False

    def failed(self) -> None:
        """A call failed in a way that the next one would too."""
        self._failed += 1
        self._trying = False
        if self._opened is not None or self._failed >= self._most:
            self._opened = self._clock()

    def abandoned(self) -> None:
        """A call was given up by whoever asked: that says nothing about the other side."""
        self._trying = False
