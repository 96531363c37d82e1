"""The checks of `/readyz` on parts outside this process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping

from trainmedic.service.access.deadline import SingleFlight

Probe = Callable[[], Awaitable[str | None]]
"""A few words on what is wrong, or None."""
CACHE_S = 5.0
"""How long a result is reused: `/readyz` needs no key, so its callers must not put load on the endpoint."""
PROBE_S = 1.5
"""Longest that a caller waits. Docker and Kubernetes take 2 and 3 seconds without a response for a failure."""


class CachedProbe:
    """A probe whose result is shared by all callers for `CACHE_S`; one without a result in ``within_s`` is down."""

    def __init__(self, probe: Probe, now: Callable[[], float] = time.monotonic, within_s: float = PROBE_S) -> None:
        self._probe = probe
        self._now = now
        self._flight = SingleFlight[str | None](within_s)
        self._lock = asyncio.Lock()
        self._result: str | None = None
        self._until = float("-inf")

    async def __call__(self) -> str | None:
        async with self._lock:
            if self._now() >= self._until:
                try:
                    self._result = await self._flight(self._probe)
                except TimeoutError:
                    self._result = "timeout"
                self._until = self._now() + CACHE_S
            return self._result


async def results(probes: Mapping[str, CachedProbe]) -> dict[str, str | None]:
    """The result of each probe; they run concurrently."""
    return dict(zip(probes, await asyncio.gather(*(probe() for probe in probes.values())), strict=True))
