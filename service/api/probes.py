"""The checks of `/readyz` on parts outside this process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

Probe = Callable[[], Awaitable[str | None]]
"""A few words on what is wrong, or None."""
CACHE_S = 5.0
"""How long a result is reused: `/readyz` needs no key, so its callers must not put load on the endpoint."""


class CachedProbe:
    """A probe whose result is shared by all callers for `CACHE_S`."""

    def __init__(self, probe: Probe, now: Callable[[], float] = time.monotonic) -> None:
        self._probe = probe
        self._now = now
        self._lock = asyncio.Lock()
        self._result: str | None = None
        self._until = float("-inf")

    async def __call__(self) -> str | None:
        async with self._lock:
            if self._now() >= self._until:
                self._result = await self._probe()
                self._until = self._now() + CACHE_S
            return self._result
