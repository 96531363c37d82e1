"""How many calls are worked on at once, and how many of them for one client, so that none takes the place of all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from functools import partial
from typing import TypeVar
from weakref import WeakValueDictionary

from trainmedic.kb.errors import TrainmedicError
from trainmedic.service.answering import Executor

T = TypeVar("T")
CLIENT: ContextVar[str] = ContextVar("client", default="")
"""Who sent the request that is being worked on; empty for a chat platform, which asks for many people."""


class Overloaded(TrainmedicError):
    """Too much is being worked on, or one question takes too long."""

    code = "timeout"
    kind = "unavailable"


class Worker:
    """Runs calls in threads, ``concurrency`` at a time and of one client one fewer, each within a deadline.

    A thread cannot be stopped, so a call past its deadline keeps its slots until it ends, and there are never more than
    ``concurrency`` busy threads.
    """

    def __init__(self, concurrency: int, timeout_s: float) -> None:
        self._slots = asyncio.Semaphore(concurrency)
        self._most_of_one = max(1, concurrency - 1)
        self._of_client: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._threads = ThreadPoolExecutor(concurrency, thread_name_prefix="advisor")
        self._timeout_s = timeout_s

    async def run(self, call: Callable[[], T]) -> T:
        """The result of ``call``. Raises `Overloaded` past the deadline, waiting for a slot included."""
        # In this order: who waits for a slot of its own takes no place in the line of everyone.
        slots = (*self._own(CLIENT.get()), self._slots)
        try:
            async with asyncio.timeout(self._timeout_s):
                await _acquire(slots)
                # Shielded: past the deadline the thread goes on, and its slots must stay taken until it ends.
                return await asyncio.shield(self._start(call, slots))
        except TimeoutError as error:
            raise Overloaded(
                f"no answer within {self._timeout_s:g} s", hint="send a shorter log, or try again"
            ) from error

    def _own(self, client: str) -> tuple[asyncio.Semaphore, ...]:
        return (self._of_client.setdefault(client, asyncio.Semaphore(self._most_of_one)),) if client else ()

    def _start(self, call: Callable[[], T], slots: tuple[asyncio.Semaphore, ...]) -> asyncio.Future[T]:
        """Begin ``call`` in a thread; its slots come back when the thread is done with it."""
        try:
            future = asyncio.get_running_loop().run_in_executor(self._threads, copy_context().run, call)
        except BaseException:
            _release(slots)
            raise
        future.add_done_callback(partial(_ended, slots))
        return future


async def _acquire(slots: tuple[asyncio.Semaphore, ...]) -> None:
    """Take all of them, or none."""
    for number, slot in enumerate(slots):
        try:
            await slot.acquire()
        except BaseException:
            _release(slots[:number])
            raise


def _release(slots: tuple[asyncio.Semaphore, ...]) -> None:
    for slot in slots:
        slot.release()


def _ended(slots: tuple[asyncio.Semaphore, ...], future: asyncio.Future[T]) -> None:
    _release(slots)
    if not future.cancelled():
        future.exception()  # past the deadline nothing else retrieves it, and asyncio would complain


def for_client(client: str, run: Executor) -> Executor:
    """``run`` for a request of ``client``, whichever task calls it."""

    async def run_for(call: Callable[[], T]) -> T:
        token = CLIENT.set(client)
        try:
            return await run(call)
        finally:
            CLIENT.reset(token)

    return run_for
