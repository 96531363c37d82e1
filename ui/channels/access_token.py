"""An access token that the platform issues for some hours."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

MARGIN_S = 300
"""Renewed so long before its end: Feishu issues a new token only in the last half hour of the old one's life."""


class AccessToken:
    """``issue`` asks the platform for a token and its life in seconds."""

    def __init__(self, issue: Callable[[], Awaitable[tuple[str, int]]]) -> None:
        self._issue = issue
        self._token = ""
        self._until = 0.0
        self._lock = asyncio.Lock()

    async def get(self) -> str:
        async with self._lock:
            if not self._token or time.monotonic() > self._until:
                self._token, life_s = await self._issue()
                self._until = time.monotonic() + max(life_s - MARGIN_S, 0)
            return self._token

    def forget(self) -> None:
        """The platform does not accept it any more."""
        self._token = ""
