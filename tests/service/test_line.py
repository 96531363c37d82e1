"""Clients take turns in the line, and none of them fills it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

import pytest

from trainmedic.kb.errors import RateLimited
from trainmedic.service.answering import run_inline
from trainmedic.service.api.line import CALLER, Caller, Line, as_caller


class Crowd:
    """Callers who wait in a line, in the order in which they came, and the order in which they got a slot."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.served: list[str] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def come(self, clients: Sequence[str], *, begun: bool = False) -> None:
        for client in clients:
            self._tasks.append(asyncio.create_task(self._wait(Caller(client, begun))))
        await asyncio.sleep(0)

    async def _wait(self, caller: Caller) -> None:
        await self.line.acquire(caller)
        self.served.append(caller.client)

    async def leave(self, number: int) -> None:
        """The one who came as this number goes away."""
        self._tasks[number].cancel()
        await asyncio.sleep(0)

    async def release(self, *clients: str) -> None:
        """The calls of these clients end, one after another."""
        for client in clients:
            self.line.release(Caller(client))
            await asyncio.sleep(0)


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)


def test_clients_take_turns_however_many_of_one_are_waiting() -> None:
    async def scenario() -> None:
        crowd = Crowd(Line(1, 10))
        await crowd.come("aaaabcc")
        await crowd.release(*"aabcac")
        assert crowd.served == [*"aabcaca"]

    run(scenario())


def test_a_free_slot_goes_to_the_client_who_has_the_fewest() -> None:
    async def scenario() -> None:
        crowd = Crowd(Line(3, 10))
        await crowd.come("aaaaab")
        assert crowd.served == [*"aaa"]
        await crowd.release("a", "a")
        assert crowd.served == [*"aaaba"]

    run(scenario())


def test_a_client_of_whom_too_many_are_waiting_is_refused_and_no_other() -> None:
    async def scenario() -> None:
        line = Line(1, 2)
        crowd = Crowd(line)
        await crowd.come("aaa")
        with pytest.raises(RateLimited):
            await line.acquire(Caller("a"))
        await crowd.come("b")
        await crowd.release("a", "b")
        assert crowd.served == [*"aab"]

    run(scenario())


def test_a_request_that_was_begun_is_finished_first_and_never_refused() -> None:
    async def scenario() -> None:
        crowd = Crowd(Line(1, 1))
        await crowd.come("aa")
        begun = asyncio.create_task(crowd.line.acquire(Caller("a", begun=True)))
        await asyncio.sleep(0)
        await crowd.release("a")
        assert begun.done()
        assert crowd.served == ["a"]
        await crowd.release("a")
        assert crowd.served == ["a", "a"]

    run(scenario())


def test_who_goes_away_takes_no_slot_along() -> None:
    async def scenario() -> None:
        crowd = Crowd(Line(1, 10))
        await crowd.come("abc")
        await crowd.leave(1)
        crowd.line.release(Caller("a"))  # the slot is given to c at this moment,
        await crowd.leave(2)  # which goes away before it can use it
        await crowd.come("d")
        assert crowd.served == ["a", "d"]

    run(scenario())


def test_a_chat_platform_asks_for_many_people() -> None:
    async def scenario() -> None:
        crowd = Crowd(Line(1, 1))
        await crowd.come(["", "", "", ""])
        await crowd.release("", "", "")
        assert crowd.served == ["", "", "", ""]

    run(scenario())


def test_a_call_is_its_callers_whichever_task_makes_it() -> None:
    async def scenario() -> None:
        caller = Caller("a")
        assert await as_caller(caller, run_inline)(CALLER.get) is caller
        assert CALLER.get() is None

    run(scenario())
