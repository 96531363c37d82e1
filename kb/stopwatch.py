"""Milliseconds per stage of one request."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import MappingProxyType


class Stopwatch:
    """Runs from its construction on."""

    def __init__(self) -> None:
        self._started = self._last = time.perf_counter()
        self._laps: dict[str, float] = {}

    def lap(self, name: str) -> None:
        """End a stage."""
        now = time.perf_counter()
        self._laps[name] = round((now - self._last) * 1000, 3)
        self._last = now

    @property
    def laps(self) -> Mapping[str, float]:
        """All stages and the total."""
        total = round((time.perf_counter() - self._started) * 1000, 3)
        return MappingProxyType({**self._laps, "total": total})
