"""Feishu's API: access token, messages as cards, files of messages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import httpx

from trainmedic.kb.model.place import Attachment
from trainmedic.ui.channels.api import PlatformApi
from trainmedic.ui.channels.channel import ChannelFailed, File, Json, NotRead
from trainmedic.ui.channels.feishu import events
from trainmedic.ui.channels.feishu.settings import FeishuSettings
from trainmedic.ui.channels.markdown_channel import BotMessage, Reception
from trainmedic.ui.present.slack_text import inert

TOKEN_EXPIRED = frozenset({99991661, 99991663, 99991664, 99991668})
TOO_OFTEN = frozenset({99991400, 230020})
RETRY_S = (1.0, 3.0)


class FeishuChannel(PlatformApi):
    """One app in one tenant of Feishu or Lark."""

    name, platform = "feishu", "Feishu"
    path = "/feishu/events"
    updates = True
    page_characters = 7_000

    def __init__(self, settings: FeishuSettings, transport: httpx.AsyncBaseTransport | None = None) -> None:
        super().__init__(settings.api_url, (), transport)
        self._settings = settings
        self.key = settings.app_secret.get_secret_value()
        self._bot = ""

    def receive(self, headers: Mapping[str, str], body: bytes) -> Reception:
        """Verify and parse a request. Raises `Refused`."""
        settings = self._settings
        encrypt_key = settings.encrypt_key.get_secret_value()
        return events.receive(headers, body, encrypt_key, settings.verification_token.get_secret_value())

    async def addressed(self, message: BotMessage) -> BotMessage | None:
        """The message without our mention. An app that may read whole groups is sent what is not meant for it too."""
        bot = await self._bot_id() if message.mentions or not message.direct else ""
        ids = {id for id, _ in message.mentions.values()}
        if not message.direct and bot not in ids:
            return None
        return replace(message, text=_without_marks(message, bot))

    async def replied_to(self, message: BotMessage) -> BotMessage | None:
        """The message at the beginning of the thread. None if the app may not read it."""
        if not message.thread:
            return None
        try:
            reply = await self._call("GET", f"/open-apis/im/v1/messages/{message.thread}")
        except ChannelFailed:
            return None
        items = reply.get("data", {}).get("items") or []
        if not items or items[0].get("deleted"):
            return None
        first = events.item_of(items[0])
        return replace(first, text=_without_marks(first, self._bot))

    async def fetch(self, file: File) -> Attachment:
        """The content of a file. Raises `NotRead`."""
        if not file.source:
            raise NotRead("image")
        headers = {"Authorization": f"Bearer {await self._access_token()}"}
        path = f"/open-apis/im/v1/messages/{file.source['message']}/resources/{file.source['key']}?type=file"
        return await self._downloads.text(f"{self._url}{path}", file.name, headers)

    async def post(self, message: BotMessage, markdown: str) -> str:
        body = {"msg_type": "interactive", "content": json.dumps(feishu_card(markdown), ensure_ascii=False)}
        reply = await self._call("POST", f"/open-apis/im/v1/messages/{message.reply}/reply", body)
        return str(reply.get("data", {}).get("message_id") or "")

    async def update(self, posted: str, markdown: str) -> None:
        await self._call(
            "PATCH",
            f"/open-apis/im/v1/messages/{posted}",
            {"content": json.dumps(feishu_card(markdown), ensure_ascii=False)},
        )

    async def _bot_id(self) -> str:
        if not self._bot:
            reply = await self._call("GET", "/open-apis/bot/v3/info")
            self._bot = str(reply.get("bot", {}).get("open_id") or "")
        return self._bot

    async def _call(self, method: str, path: str, body: Json | None = None) -> dict[str, Any]:
        """The reply to a call. A refusal for its rate is tried again. Raises `ChannelFailed`."""
        code = 0
        for pause in (0.0, *RETRY_S):
            await asyncio.sleep(pause)
            headers = {"Authorization": f"Bearer {await self._access_token()}"}
            reply = await self._request(method, f"{self._url}{path}", body, headers)
            code = reply.get("code", 0)
            if code == 0:
                return reply
            if code in TOKEN_EXPIRED:
                self._token = ""
            elif code not in TOO_OFTEN:
                break
        raise ChannelFailed(
            f"Feishu refused the call (code {code})", hint="docs/connect/channels.md lists the permissions"
        )

    async def _issued(self) -> tuple[str, int]:
        credentials = {"app_id": self._settings.app_id, "app_secret": self.key}
        url = f"{self._url}/open-apis/auth/v3/tenant_access_token/internal"
        reply = await self._request("POST", url, credentials)
        if reply.get("code", 0) != 0 or not reply.get("tenant_access_token"):
            code = reply.get("code")
            raise ChannelFailed(
                f"Feishu does not accept the app (code {code})", hint="check feishu_app_id and feishu_app_secret"
            )
        return str(reply["tenant_access_token"]), int(reply.get("expire") or 0)


def feishu_card(markdown: str) -> dict[str, Any]:
    """A card with one Markdown text, in the card format 2.0, which knows code blocks and headings."""
    return {
        "schema": "2.0",
        "config": {"update_multi": True},
        "body": {"elements": [{"tag": "markdown", "content": inert(markdown)}]},
    }


def _without_marks(message: BotMessage, bot: str) -> str:
    text = message.text
    # The longest first: `@_user_1` is the beginning of `@_user_10`.
    for mark in sorted(message.mentions, key=len, reverse=True):
        id, name = message.mentions[mark]
        text = text.replace(mark, "" if id == bot else f"@{name}")
    return text.strip()
