"""Calls of a platform's API, with the access token that it issues for some hours."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import httpx

from trainmedic.ui.channels.channel import ChannelFailed, Json
from trainmedic.ui.channels.files import Downloads

TIMEOUT_S = 10.0
MARGIN_S = 300
"""A token is renewed so long before its end: Feishu issues a new one only in the last half hour of the old one."""


class PlatformApi(ABC):
    """The common part of the channels of several platforms; each knows how its tokens are issued."""

    platform = ""

    def __init__(self, url: str, hosts: tuple[str, ...], transport: httpx.AsyncBaseTransport | None) -> None:
        self._url = url.rstrip("/")
        self._client = httpx.AsyncClient(timeout=TIMEOUT_S, transport=transport)
        self._downloads = Downloads(client=self._client, hosts=hosts, api_url=self._url)
        self._token, self._until = "", 0.0
        self._issuing = asyncio.Lock()

    async def aclose(self) -> None:
        await self._client.aclose()

    @abstractmethod
    async def _issued(self) -> tuple[str, int]:
        """A token and its life in seconds. Raises `ChannelFailed`."""

    async def _access_token(self) -> str:
        async with self._issuing:
            if not self._token or time.monotonic() > self._until:
                self._token, life_s = await self._issued()
                self._until = time.monotonic() + max(life_s - MARGIN_S, 0)
            return self._token

    async def _request(
        self, method: str, url: str, body: Json | None, headers: Mapping[str, str] = MappingProxyType({})
    ) -> dict[str, Any]:
        """The reply, a refusal too: the platforms say why in its body. Raises `ChannelFailed`."""
        try:
            response = await self._client.request(method, url, json=body, headers=headers)
            reply = response.json()
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise ChannelFailed(f"{self.platform} cannot be reached ({type(error).__name__})") from None
        return reply if isinstance(reply, dict) else {"code": response.status_code}
