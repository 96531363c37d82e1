"""Slots for calls: few at once, and never all of them for one client."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import pytest

from trainmedic.service.access.slots import CLIENT, Overloaded, Worker, for_client
from trainmedic.service.answering import Executor, run_inline


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)


class Slow:
    """Calls that last until they are let go."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.running = 0

    def __call__(self) -> None:
        self.running += 1
        self.release.wait(30)
        self.running -= 1


async def until_idle(run: Executor) -> str:
    """The result of a call, once a slot has come back."""
    for _ in range(100):
        with suppress(Overloaded):
            return await run(lambda: "now")
    raise AssertionError("no slot came back")


def test_one_client_with_many_slow_calls_leaves_a_slot_to_others() -> None:
    async def scenario() -> None:
        worker, slow = Worker(4, 30), Slow()
        busy = for_client("a", worker.run)
        calls = [asyncio.ensure_future(busy(slow)) for _ in range(20)]
        await asyncio.sleep(0.05)
        assert slow.running == 3
        assert await asyncio.wait_for(for_client("b", worker.run)(lambda: "b"), 5) == "b"
        slow.release.set()
        await asyncio.gather(*calls)
        assert slow.running == 0

    run(scenario())


def test_a_chat_platform_asks_for_many_people() -> None:
    async def scenario() -> None:
        worker, slow = Worker(4, 30), Slow()
        calls = [asyncio.ensure_future(worker.run(slow)) for _ in range(4)]
        await asyncio.sleep(0.05)
        assert slow.running == 4
        slow.release.set()
        await asyncio.gather(*calls)

    run(scenario())


def test_late_threads_keep_their_slots_until_they_end() -> None:
    async def scenario() -> None:
        worker, slow = Worker(2, 0.1), Slow()
        busy = for_client("a", worker.run)
        with pytest.raises(Overloaded):
            await busy(slow)
        with pytest.raises(Overloaded):
            await busy(lambda: "no slot of its own yet")
        assert await for_client("b", worker.run)(lambda: "b") == "b"
        slow.release.set()
        assert await until_idle(busy) == "now"

    run(scenario())


def test_who_goes_away_while_waiting_takes_no_slot_along() -> None:
    async def scenario() -> None:
        worker, slow = Worker(1, 30), Slow()
        busy = for_client("a", worker.run)
        first, gone = asyncio.ensure_future(busy(slow)), asyncio.ensure_future(busy(slow))
        await asyncio.sleep(0.05)
        gone.cancel()
        with suppress(asyncio.CancelledError):
            await gone
        slow.release.set()
        await first
        assert await busy(lambda: 7) == 7

    run(scenario())


def test_who_goes_away_while_served_frees_the_slot_when_the_thread_ends() -> None:
    async def scenario() -> None:
        worker, slow = Worker(1, 5), Slow()
        gone = asyncio.ensure_future(worker.run(slow))
        await asyncio.sleep(0.05)
        gone.cancel()
        with suppress(asyncio.CancelledError):
            await gone
        following = asyncio.ensure_future(worker.run(lambda: slow.running))
        await asyncio.sleep(0.05)
        assert not following.done()
        slow.release.set()
        assert await following == 0

    run(scenario())


def test_an_error_of_a_call_is_the_callers_and_gives_the_slot_back() -> None:
    async def scenario() -> None:
        worker, settings = Worker(1, 5), dict[str, int]()
        for _ in range(3):
            with pytest.raises(KeyError):
                await worker.run(lambda: settings["absent"])
        assert await worker.run(lambda: 7) == 7

    run(scenario())


def test_a_call_is_its_clients_whichever_task_makes_it() -> None:
    async def scenario() -> None:
        assert await for_client("a", run_inline)(CLIENT.get) == "a"
        assert CLIENT.get() == ""

    run(scenario())
