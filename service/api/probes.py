"""What `/readyz` asks of what lies outside this process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

Probe = Callable[[], Awaitable[str | None]]
"""Says in a word what is wrong, or None."""
HOLDS_S = 5.0
"""Seconds for which an endpoint's state is not asked for again: orchestrators look about that often, and whoever else
asks (`/readyz` needs no key) puts no load on the endpoint."""


class Remembered:
    """A probe that is asked once for all who want to know within `HOLDS_S`."""

    def __init__(self, probe: Probe, now: Callable[[], float] = time.monotonic) -> None:
        self._probe = probe
        self._now = now
        self._lock = asyncio.Lock()
        self._word: str | None = None
        self._until = float("-inf")

    async def __call__(self) -> str | None:
        """What was wrong a moment ago, or is now; None where nothing is."""
        async with self._lock:
            if self._now() >= self._until:
                self._word = await self._probe()
                self._until = self._now() + HOLDS_S
            return self._word
