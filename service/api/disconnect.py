"""Cancel work when the client disconnects."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from fastapi import Request

T = TypeVar("T")
CLIENT_CLOSED_REQUEST = 499
"""nginx's status, in metrics and logs, for a request whose client has disconnected."""


class ClientDisconnected(Exception):
    """The client has closed its connection; no one reads the response."""


async def until_disconnect(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of ``work``, which is cancelled with `ClientDisconnected` if the client disconnects first.

    The request's body must have been read.
    """
    working, disconnect = asyncio.ensure_future(work), asyncio.ensure_future(_disconnect(request))
    try:
        await asyncio.wait((working, disconnect), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnected
        return working.result()
    finally:
        working.cancel()
        disconnect.cancel()
        # Awaited, so that no task outlives its request and cleanup in `work` has run.
        await asyncio.gather(working, disconnect, return_exceptions=True)


async def _disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
