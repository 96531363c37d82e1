"""Discord's API: the reply to an interaction and its further messages, through the interaction's own webhook."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping

import httpx
from cachetools import TTLCache
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from trainmedic.kb.model.place import Attachment
from trainmedic.service.observers.formats import CHARACTERS, discord_message
from trainmedic.service.settings import MEBIBYTE, Settings
from trainmedic.ui.bots.channel import BotMessage, ChannelFailed, FileReference, NotRead, Reception
from trainmedic.ui.bots.discord import events
from trainmedic.ui.bots.files import download

TIMEOUT_S = 10.0
TOKEN_S = 900.0
"""How long an interaction can be answered."""
INTERACTIONS = 5_000
LONGEST_PAUSE_S = 10.0
ATTEMPTS = 3


class DiscordChannel:
    """The commands of one application."""

    name = "discord"
    path = "/discord/interactions"
    updates = True
    page_characters = CHARACTERS["discord"]
    help = "help_commands"

    def __init__(self, settings: Settings, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._public_key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(settings.discord_public_key))
        # There is no secret of the application; conversations are remembered by this process only.
        self.key = secrets.token_hex(16)
        self._url = settings.discord_api_url.rstrip("/")
        self._max_bytes = settings.bot_file_mb * MEBIBYTE
        self._client = httpx.AsyncClient(timeout=TIMEOUT_S, transport=transport)
        self._begun: TTLCache[str, bool] = TTLCache(INTERACTIONS, TOKEN_S)

    def receive(self, headers: Mapping[str, str], body: bytes) -> Reception:
        """Verify and parse a request. Raises `Refused`."""
        return events.receive(headers, body, self._public_key, time.time())

    async def addressed(self, message: BotMessage) -> BotMessage | None:
        """The message itself: a command is always meant for its application."""
        return message

    async def replied_to(self, message: BotMessage) -> BotMessage | None:
        """None: the message on which a command is used comes with it."""
        return None

    async def fetch(self, file: FileReference) -> Attachment:
        """The content of a file. Raises `NotRead`."""
        if not file.readable:
            raise NotRead("image")
        return await download(self._client, file.key, file.name, self._max_bytes)

    async def post(self, message: BotMessage, markdown: str) -> str:
        """The first text takes the place of "is thinking…", further ones follow it."""
        if message.reply in self._begun:
            await self._call("POST", f"/webhooks/{message.reply}", markdown)
            return ""
        self._begun[message.reply] = True
        await self.update(message.reply, markdown)
        return message.reply

    async def update(self, posted: str, markdown: str) -> None:
        await self._call("PATCH", f"/webhooks/{posted}/messages/@original", markdown)

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _call(self, method: str, path: str, markdown: str) -> None:
        """Raises `ChannelFailed`. Tried again if it comes too often, or before Discord knows that we will answer."""
        status = 0
        for _ in range(ATTEMPTS):
            try:
                response = await self._client.request(method, f"{self._url}{path}", json=discord_message(markdown))
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise ChannelFailed(f"Discord cannot be reached ({type(error).__name__})") from None
            status = response.status_code
            if status not in (404, 429):
                break
            await asyncio.sleep(_pause(response))
        if status >= 300:
            raise ChannelFailed(f"Discord refused the message (HTTP {status})")


def _pause(response: httpx.Response) -> float:
    try:
        return min(float(response.headers.get("retry-after", "1")), LONGEST_PAUSE_S)
    except ValueError:
        return 1.0
