"""How far the reading of a question's files has got, while the first part of its answer is awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass

from trainmedic.kb.parse.text.progress import observer
from trainmedic.service.answering import Parts, StreamPart

LARGE = 300_000
"""Bytes of all inputs from which progress is worth a word."""
EVERY_S = 0.25


@dataclass(slots=True)
class Progress:
    """Bytes read so far, and of all inputs."""

    read: int = 0
    total: int = 0

    def observe(self, read: int, total: int) -> None:
        """Called by the thread that reads; the same text may be read again, so it never goes back."""
        if total >= LARGE and read > self.read:
            self.read, self.total = read, max(total, self.total)

    @property
    def megabytes(self) -> tuple[str, str]:
        return f"{self.read / 1e6:.1f}", f"{self.total / 1e6:.1f}"


async def with_progress(parts: Parts) -> AsyncIterator[StreamPart | Progress]:
    """The parts of an answer, and before the first of them the progress of reading, whenever there is any."""
    progress = Progress()
    token = observer.set(progress.observe)
    first = asyncio.ensure_future(_next(parts))  # with the observer of now in its context
    observer.reset(token)
    shown = progress.megabytes
    try:
        while not first.done():
            await asyncio.wait({first}, timeout=EVERY_S)
            if not first.done() and progress.megabytes != shown:
                shown = progress.megabytes
                yield progress
    finally:
        if not first.done():
            first.cancel()
            with suppress(asyncio.CancelledError):
                await first
    part = first.result()
    if part is not None:
        yield part
    async for part in parts:
        yield part


async def _next(parts: Parts) -> StreamPart | None:
    return await anext(parts, None)
