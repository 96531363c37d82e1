"""Questions in progress: bounded in number, and finished before the process ends."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

CONCURRENCY = 16
"""Questions answered at once; the advisor's own bound is lower."""
MAX_PENDING = 200
"""Accepted questions; beyond this the bot says that it is busy."""
SHUTDOWN_S = 20.0
"""Time left to questions in progress at shutdown."""


class Tasks:
    """Belongs to one event loop."""

    def __init__(self) -> None:
        # asyncio keeps only weak references to tasks: without this set one could vanish half-way.
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(CONCURRENCY)

    @property
    def running(self) -> int:
        """Questions accepted but not answered yet."""
        return len(self._tasks)

    @property
    def full(self) -> bool:
        return len(self._tasks) >= MAX_PENDING

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work`` as a task; `drain` waits for it."""
        task = asyncio.create_task(self._bounded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drain(self, within_s: float) -> None:
        """Wait for the questions in progress, then cancel the rest."""
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=within_s)
        for task in set(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _bounded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            async with self._slots:
                await work
        finally:
            work.close()  # if it was cancelled before it started
