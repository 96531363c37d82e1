"""An orderly end: answers in progress are finished, streams that have no end of their own are closed."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger("trainmedic")


class EndlessStreams:
    """ASGI application that tells the endless streams of ``app`` that their client has left, once `close` is called.

    Such are the sign of life of an open page and the stream on which an MCP client waits for notices: a client keeps
    them open until it leaves, so a server that waited for them would not stop as long as a page is open somewhere.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._closing = asyncio.Event()

    def close(self) -> None:
        self._closing.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _is_endless(scope["method"], scope["path"]):
            return await self._app(scope, receive, send)

        async def receive_or_close() -> Message:
            message, closing = asyncio.ensure_future(receive()), asyncio.ensure_future(self._closing.wait())
            try:
                await asyncio.wait((message, closing), return_when=asyncio.FIRST_COMPLETED)
                return message.result() if message.done() else {"type": "http.disconnect"}
            finally:
                message.cancel()
                closing.cancel()

        await self._app(scope, receive_or_close, send)


class Server(uvicorn.Server):
    """Told to stop, it takes no more connections, calls ``on_stop``, and finishes the requests that it has."""

    def __init__(self, config: uvicorn.Config, on_stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_stop = on_stop

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._on_stop()
        await super().shutdown(sockets)


def end_after(seconds: float, end: Callable[[int], object] = os._exit) -> None:
    """End the process then as a success, if it still lives: Python waits for threads, and one that hangs never ends."""

    def finish() -> None:
        log.warning("a call does not return; the process ends without it")
        end(0)

    timer = threading.Timer(seconds, finish)
    timer.daemon = True
    timer.start()


def _is_endless(method: str, path: str) -> bool:
    return method == "GET" and ("/heartbeat/" in path or path.endswith("/mcp"))
