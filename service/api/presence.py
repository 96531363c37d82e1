"""Work that is done only as long as somebody waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from fastapi import Request

T = TypeVar("T")
LEFT = 499
"""The status in metrics and logs of a request whose client has left (nginx's own number for it)."""


class Left(Exception):
    """The client has closed its connection; nobody reads what is answered."""


async def while_there(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of ``work``. When the client leaves before, the work is cancelled and `Left` raised.

    The request's body must have been read.
    """
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise Left
        return working.result()
    finally:
        for each in (working, leaving):
            each.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
