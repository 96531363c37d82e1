"""The pages are loaded when they are wanted, and once more if that failed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from fastapi import FastAPI

from trainmedic.service.advisor import Advisor
from trainmedic.service.answering import TemplateAnswerer, run_inline
from trainmedic.service.settings import Settings
from trainmedic.ui.chat.app import Shell
from trainmedic.ui.chat.mount import LateShell, Receive, Scope, Send
from trainmedic.ui.context import AppContext

PATIENCE_S = 20
NO_FILES = OSError(24, "Too many open files")


class FakeShell:
    """Stands for the pages; fails to start ``failures`` times."""

    def __init__(self, failures: int) -> None:
        self._failures = failures
        self.ready = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        if self._failures:
            self._failures -= 1
            raise NO_FILES
        self.ready.set()
        yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


def context_of(advisor: Advisor) -> AppContext:
    return AppContext(settings=Settings(), advisor=advisor, answerer=TemplateAnswerer(advisor), executor=run_inline)


def test_pages_that_failed_to_load_or_to_start_are_tried_again(advisor: Advisor) -> None:
    async def start() -> None:
        shell, failures = FakeShell(2), [NO_FILES, NO_FILES]

        def make() -> FakeShell:
            if failures:
                raise failures.pop()
            return shell

        late = LateShell(make, pauses_s=(0.0,))
        async with late.running():
            late._wanted.set()
            await asyncio.wait_for(shell.ready.wait(), PATIENCE_S)

    async def load() -> None:
        failures, loaded = [NO_FILES, NO_FILES], asyncio.Event()
        loop = asyncio.get_running_loop()

        def load_pages(context: AppContext) -> FastAPI:
            if failures:
                raise failures.pop()
            loop.call_soon_threadsafe(loaded.set)
            return FastAPI()

        async with Shell(context_of(advisor), load_pages, pauses_s=(0.0,)).running():
            await asyncio.wait_for(loaded.wait(), PATIENCE_S)

    asyncio.run(start())
    asyncio.run(load())


def test_whoever_stops_the_service_does_not_wait_for_the_next_attempt() -> None:
    async def stop() -> None:
        late = LateShell(lambda: FakeShell(1), pauses_s=(3_600.0,))
        async with late.running():
            late._wanted.set()
            await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(stop(), PATIENCE_S))


def test_the_knowledge_is_there_without_the_question_page(advisor: Advisor) -> None:
    shell = Shell(context_of(advisor), None)

    async def status(path: str) -> int:
        transport = httpx.ASGITransport(shell, client=("127.0.0.1", 1))
        async with shell.running(), httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return (await client.get(path)).status_code

    assert [asyncio.run(status(path)) for path in ("/knowledge/", "/zh/")] == [200, 404]
