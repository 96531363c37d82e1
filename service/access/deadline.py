"""Waiting for calls in threads, which cannot be stopped and may never return."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")
MOST_LATE = 16
"""Calls past their deadline at once: what hangs must not use up all threads, of which there are 40."""


async def within(seconds: float, call: Awaitable[T]) -> T:
    """The result of ``call``. Raises `TimeoutError`; the call then goes on, and what becomes of it is ignored."""
    future = asyncio.ensure_future(call)
    future.add_done_callback(_ignore)
    done, _ = await asyncio.wait((future,), timeout=seconds)
    if not done:
        raise TimeoutError
    return future.result()


class SingleFlight(Generic[T]):
    """Of the calls with the same name one is made at a time; all who ask meanwhile get its result."""

    def __init__(self, within_s: float) -> None:
        self._within_s = within_s
        self._calls: dict[str, asyncio.Future[T]] = {}
        self._late: set[str] = set()

    async def __call__(self, call: Callable[[], Awaitable[T]], name: str = "") -> T:
        """The result. Raises `TimeoutError` after ``within_s``, and at once while such a call still goes on."""
        future = self._calls.get(name)
        if future is None or future.done():
            if len(self._late) >= MOST_LATE:
                raise TimeoutError
            future = self._calls[name] = asyncio.ensure_future(call())
            future.add_done_callback(lambda _: self._ended(name))
        elif name in self._late:
            raise TimeoutError
        try:
            return await within(self._within_s, future)
        except TimeoutError:
            if not future.done():
                self._late.add(name)
            raise

    def _ended(self, name: str) -> None:
        self._calls.pop(name, None)
        self._late.discard(name)


def _ignore(future: asyncio.Future[T]) -> None:
    """Retrieve the exception, or asyncio complains."""
    if not future.cancelled():
        future.exception()
