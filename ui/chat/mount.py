"""Where the pages are in the application: behind all other routes, and not there before someone wants them.

What the pages need takes longer to load than the service to answer: what is in front of them a tenth of a second,
Gradio a second and a half. So neither is loaded before the first request for a page, or a moment after the start.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from itertools import chain, repeat
from threading import Lock
from typing import Any, Protocol

from fastapi import FastAPI
from starlette.routing import Match, Mount

from trainmedic.ui.context import during

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]
log = logging.getLogger("trainmedic.chat")
PAUSE_S = 1.0
"""Between the start and loading the pages, which would take half of the processor from the first answers."""
PAUSES_S = (1.0, 5.0, 30.0)
"""Before the pages are loaded again after a failure, as when all files were in use; the last one from then on."""
API_PREFIXES = ("/v1/", "/mcp", "/slack", "/feishu", "/dingtalk")


class Shell(Protocol):
    """`ui.chat.app.Shell`, the application in front of the pages."""

    def running(self) -> AbstractAsyncContextManager[None]: ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


def attach(app: FastAPI, make: Callable[[], Shell]) -> None:
    """Serve the pages for every path without a route in ``app``."""
    shell = LateShell(make)
    app.router.routes.append(LastMount("/", shell, app))
    during(app, shell.running)


class LastMount(Mount):
    """Fallback mount for unmatched paths; a wrong method on an API path stays that route's error."""

    def __init__(self, path: str, shell: Asgi, app: FastAPI) -> None:
        super().__init__(path, app=shell)
        self._all = app.router.routes

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        path = scope.get("path", "")
        if scope["type"] != "http" or f"{path}/".startswith(API_PREFIXES):
            return Match.NONE, {}
        # A partial match is a known path with a wrong method, which must stay a 405.
        if any(route is not self and route.matches(scope)[0] is not Match.NONE for route in self._all):
            return Match.NONE, {}
        return super().matches(scope)


async def until_loaded(serve: Callable[[], Awaitable[None]], stop: asyncio.Event, pauses_s: Sequence[float]) -> None:
    """Call ``serve``, after a failure again, until it returns or ``stop`` is set."""
    for pause_s in chain(pauses_s, repeat(pauses_s[-1])):
        try:
            await serve()
        except Exception:
            log.exception("the pages could not be loaded; the API goes on without them, next attempt in %g s", pause_s)
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), pause_s)
            if not stop.is_set():
                continue
        return


class LateShell:
    """The shell in front of the pages, made when it is wanted."""

    def __init__(self, make: Callable[[], Shell], pauses_s: Sequence[float] = PAUSES_S) -> None:
        self._make = make
        self._pauses_s = pauses_s
        self._making = Lock()
        self._wanted = asyncio.Event()
        self._shell: Shell | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Make the shell and let it load the pages in the background, until the context closes."""
        stop = asyncio.Event()
        task = asyncio.create_task(self._serve(stop))
        try:
            yield
        finally:
            stop.set()
            await task

    async def _serve(self, stop: asyncio.Event) -> None:
        waiting = [asyncio.create_task(event.wait()) for event in (self._wanted, stop)]
        await asyncio.wait(waiting, timeout=PAUSE_S, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        if stop.is_set():
            return
        await until_loaded(lambda: self._run(stop), stop, self._pauses_s)

    async def _run(self, stop: asyncio.Event) -> None:
        async with (await asyncio.to_thread(self._made)).running():
            await stop.wait()

    def _made(self) -> Shell:
        with self._making:
            if self._shell is None:
                self._shell = self._make()
            return self._shell

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._wanted.set()
        shell = self._shell
        if shell is None:
            shell = await asyncio.to_thread(self._made)
        await shell(scope, receive, send)
