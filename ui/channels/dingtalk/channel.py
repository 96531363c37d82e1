"""DingTalk's API: replies through the webhook of a session, and files of messages."""

from __future__ import annotations

import time
from collections.abc import Mapping
from urllib.parse import urlsplit

import httpx

from trainmedic.kb.model.place import Attachment
from trainmedic.ui.channels.api import PlatformApi
from trainmedic.ui.channels.channel import ChannelFailed, File, NotRead
from trainmedic.ui.channels.dingtalk import events
from trainmedic.ui.channels.dingtalk.settings import DingTalkSettings
from trainmedic.ui.channels.markdown_channel import BotMessage, Reception
from trainmedic.ui.present.slack_text import inert

WEBHOOK_ORIGIN = ("https", "oapi.dingtalk.com")
API = "https://api.dingtalk.com"
HOSTS = ("dingtalk.com", "dingtalk.io", "aliyuncs.com")
"""Where DingTalk stores files: its own hosts, and the object storage of its cloud."""
TITLE = 40


class DingTalkChannel(PlatformApi):
    """One robot of an organisation's app."""

    name, platform = "dingtalk", "DingTalk"
    path = "/dingtalk/events"
    updates = False
    page_characters = 5_500

    def __init__(self, settings: DingTalkSettings, transport: httpx.AsyncBaseTransport | None = None) -> None:
        super().__init__(API, HOSTS, transport)
        self._settings = settings
        self.key = settings.client_secret.get_secret_value()

    def receive(self, headers: Mapping[str, str], body: bytes) -> Reception:
        """Verify and parse a request. Raises `Refused`."""
        return events.receive(headers, body, self.key, time.time())

    async def addressed(self, message: BotMessage) -> BotMessage | None:
        """The message itself: in groups DingTalk sends a robot only what mentions it."""
        return message

    async def replied_to(self, message: BotMessage) -> BotMessage | None:
        """None: robots cannot read other messages; DingTalk sends a quoted text along."""
        return None

    async def fetch(self, file: File) -> Attachment:
        """The content of a file. Raises `NotRead`."""
        if not file.source:
            raise NotRead("image")
        body = {"downloadCode": file.source["code"], "robotCode": self._settings.client_id}
        headers = {"x-acs-dingtalk-access-token": await self._access_token()}
        reply = await self._request("POST", f"{self._url}/v1.0/robot/messageFiles/download", body, headers)
        url = str(reply.get("downloadUrl") or "")
        if not url:
            raise NotRead("failed", why=str(reply.get("code") or "no address"))
        return await self._downloads.text(url.replace("http://", "https://", 1), file.name)

    async def post(self, message: BotMessage, markdown: str) -> str:
        """Reply in the session. DingTalk cannot change what was posted, so there is no id."""
        if not self._is_webhook(message.reply):
            raise ChannelFailed("the session's webhook is not DingTalk's")
        mentioned = []
        # Ids of people outside the organisation cannot be mentioned.
        if not message.direct and message.user and not message.user.startswith("$"):
            markdown, mentioned = f"{markdown}\n\n@{message.user}", [message.user]
        body = {
            "msgtype": "markdown",
            "markdown": {"title": title_of(markdown), "text": inert(markdown)},
            "at": {"atUserIds": mentioned, "isAtAll": False},
        }
        reply = await self._request("POST", message.reply, body)
        if reply.get("errcode", 0) != 0:
            raise ChannelFailed(f"DingTalk refused the message (errcode {reply.get('errcode')})")
        return ""

    async def update(self, posted: str, markdown: str) -> None:
        raise ChannelFailed("DingTalk cannot change a message")

    def _is_webhook(self, url: str) -> bool:
        """Whether answers may go there: the signature of a request does not cover its body."""
        try:
            target, api = urlsplit(url), urlsplit(self._url)
        except ValueError:
            return False
        return (target.scheme, target.netloc) in (WEBHOOK_ORIGIN, (api.scheme, api.netloc))

    async def _issued(self) -> tuple[str, int]:
        credentials = {"appKey": self._settings.client_id, "appSecret": self.key}
        reply = await self._request("POST", f"{self._url}/v1.0/oauth2/accessToken", credentials)
        if not reply.get("accessToken"):
            raise ChannelFailed(
                f"DingTalk does not accept the app ({reply.get('code')})",
                hint="check dingtalk_client_id and dingtalk_client_secret",
            )
        return str(reply["accessToken"]), int(reply.get("expireIn") or 0)


def title_of(markdown: str) -> str:
    """The first line with words, without Markdown's marks: what a notification shows."""
    first = next((line.strip("#>*-` ") for line in markdown.splitlines() if line.strip("#>*-` ")), "trainmedic")
    return first.replace("*", "")[:TITLE]
