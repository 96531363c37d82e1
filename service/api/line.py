"""The line of those who wait for an answer: clients take turns, so that none of them delays the others."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

from trainmedic.kb.errors import RateLimited
from trainmedic.service.answering import Executor

T = TypeVar("T")
ROUNDS = 16
"""As many of one client may wait as are answered in this many rounds; those behind them would wait for too long."""


@dataclass(slots=True)
class Caller:
    """One request in line. ``client`` is who sent it; empty for a chat platform, which asks for many people."""

    client: str = ""
    begun: bool = False
    """Whether a part of it was done: then it is not refused any more."""


CALLER: ContextVar[Caller | None] = ContextVar("caller", default=None)
"""The request that is being worked on."""


class Line:
    """Slots for ``slots`` calls at once. A free one goes to the client with the fewest, in turns."""

    def __init__(self, slots: int, most_waiting: int) -> None:
        self._free = slots
        self._most_waiting = most_waiting
        self._running: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    async def acquire(self, caller: Caller) -> None:
        """Wait for a slot. Raises `RateLimited` for a new request of a client of which too many are waiting."""
        client, queue = caller.client, self._waiting.get(caller.client, deque())
        if self._free:
            self._begin(client)
        else:
            if client and not caller.begun and len(queue) >= self._most_waiting:
                message = f"{len(queue)} of your requests are waiting already"
                raise RateLimited(message, hint="wait for some of their answers")
            turn = asyncio.get_running_loop().create_future()
            if caller.begun:
                queue.appendleft(turn)
            else:
                queue.append(turn)
            self._waiting[client] = queue
            await self._turn(turn, client)
        caller.begun = True

    def release(self, caller: Caller) -> None:
        """Give a slot back."""
        self._running[caller.client] -= 1
        if not self._running[caller.client]:
            del self._running[caller.client]
        self._free += 1
        while self._free and self._waiting:
            client = min(self._waiting, key=lambda waiting: self._running[waiting])
            queue = self._waiting.pop(client)
            turn = queue.popleft()
            if queue:
                self._waiting[client] = queue  # at the end: it is the others' turn
            if not turn.cancelled():
                self._begin(client)
                turn.set_result(None)

    async def _turn(self, turn: asyncio.Future[None], client: str) -> None:
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # the slot came at the same moment
                self.release(Caller(client))
            elif turn in (queue := self._waiting.get(client, deque())):
                queue.remove(turn)
                if not queue:
                    del self._waiting[client]
            raise

    def _begin(self, client: str) -> None:
        self._free -= 1
        self._running[client] += 1


def as_caller(caller: Caller, run: Executor) -> Executor:
    """``run`` for a request of ``caller``, whichever task calls it."""

    async def run_as(call: Callable[[], T]) -> T:
        token = CALLER.set(caller)
        try:
            return await run(call)
        finally:
            CALLER.reset(token)

    return run_as
