"""Feishu and DingTalk as their documents describe them: signatures, tokens, limits, refusals."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse

from trainmedic.service.advisor import Advisor
from trainmedic.service.answering import Answerer, TemplateAnswerer, run_inline
from trainmedic.service.settings import Settings
from trainmedic.ui.channels import dingtalk, feishu
from trainmedic.ui.context import AppContext

BOT, TOKEN = "ou_bot", "t-tenant"
MAX_CARD = 30 * 1024
MAX_MARKDOWN = 20_000
Json = dict[str, Any]


class FakeFeishu:
    """The open platform: issues tokens, stores messages, refuses what the real one refuses."""

    app_id, app_secret, encrypt_key, verification_token = "cli_app", "app-secret", "test key", "v-token"

    def __init__(self) -> None:
        self.app = FastAPI()
        self.cards: dict[str, list[str]] = {}
        self.replied_to: list[str] = []
        self.files: dict[tuple[str, str], bytes] = {}
        self.stored: dict[str, Json] = {}
        self.tokens = 0
        self.codes: list[int] = []
        self._routes()

    def settings(self) -> Json:
        return {
            "feishu_app_id": self.app_id,
            "feishu_app_secret": self.app_secret,
            "feishu_encrypt_key": self.encrypt_key,
            "feishu_verification_token": self.verification_token,
            "feishu_api_url": "http://feishu.test",
        }

    def _routes(self) -> None:
        @self.app.post("/open-apis/auth/v3/tenant_access_token/internal")
        async def token(request: Request) -> Json:
            if await request.json() != {"app_id": self.app_id, "app_secret": self.app_secret}:
                return {"code": 10014, "msg": "app secret invalid"}
            self.tokens += 1
            return {"code": 0, "msg": "ok", "tenant_access_token": f"{TOKEN}-{self.tokens}", "expire": 7200}

        @self.app.get("/open-apis/bot/v3/info")
        async def info(request: Request) -> Response:
            return self._reply(request, {"bot": {"open_id": BOT, "app_name": "trainmedic"}})

        @self.app.post("/open-apis/im/v1/messages/{message}/reply")
        async def reply(message: str, request: Request) -> Response:
            body = await request.json()
            id = f"om_reply{len(self.cards) + 1}"
            refused = self._card(body)
            if refused is None and not self.codes:
                self.cards[id] = [markdown_of(body["content"])]
                self.replied_to.append(message)
            return refused or self._reply(request, {"data": {"message_id": id}})

        @self.app.patch("/open-apis/im/v1/messages/{message}")
        async def patch(message: str, request: Request) -> Response:
            body = await request.json()
            refused = self._card({"msg_type": "interactive", **body})
            if refused is None and not self.codes:
                self.cards[message].append(markdown_of(body["content"]))
            return refused or self._reply(request, {"data": {}})

        @self.app.get("/open-apis/im/v1/messages/{message}/resources/{key}")
        async def resource(message: str, key: str, type: str, request: Request) -> Response:
            content = self.files.get((message, key)) if type == "file" else None
            if content is None or not self._authorized(request):
                return JSONResponse({"code": 234003, "msg": "File not in msg."}, status_code=400)
            return Response(content, media_type="application/octet-stream")

        @self.app.get("/open-apis/im/v1/messages/{message}")
        async def read(message: str, request: Request) -> Response:
            if message not in self.stored:
                return JSONResponse({"code": 230002, "msg": "The bot is not in the group."}, status_code=400)
            return self._reply(request, {"data": {"items": [self.stored[message]]}})

    def _authorized(self, request: Request) -> bool:
        return request.headers.get("authorization") == f"Bearer {TOKEN}-{self.tokens}"

    def _card(self, body: Json) -> Response | None:
        if body["msg_type"] != "interactive" or len(body["content"].encode()) > MAX_CARD:
            return JSONResponse({"code": 230025, "msg": "the length of the message content reaches its limit"}, 400)
        return None

    def _reply(self, request: Request, content: Json) -> Response:
        if self.codes:
            return JSONResponse({"code": self.codes.pop(0), "msg": "refused"}, 400)
        if not self._authorized(request):
            return JSONResponse({"code": 99991663, "msg": "Invalid access token"}, 400)
        return JSONResponse({"code": 0, "msg": "success", **content})

    def request(self, event: Json, **changes: str) -> tuple[Mapping[str, str], bytes]:
        """Headers and body as the platform sends them; ``changes`` replace headers."""
        body = json.dumps({"encrypt": encrypted(json.dumps(event), self.encrypt_key)}).encode()
        stamp, nonce = str(int(time.time())), "nonce"
        sign = hashlib.sha256(f"{stamp}{nonce}{self.encrypt_key}".encode() + body).hexdigest()
        headers = {
            "x-lark-request-timestamp": stamp,
            "x-lark-request-nonce": nonce,
            "x-lark-signature": sign,
            "content-type": "application/json",
        }
        return {**headers, **changes}, body

    def event(self, message: Json, *, id: str = "om_1", sender: str = "user", token: str = "") -> Json:
        return {
            "schema": "2.0",
            "header": {
                "event_id": f"event-{id}",
                "event_type": "im.message.receive_v1",
                "create_time": "1700000000000",
                "token": token or self.verification_token,
                "app_id": self.app_id,
                "tenant_key": "tenant",
            },
            "event": {
                "sender": {"sender_id": {"open_id": "ou_asker"}, "sender_type": sender, "tenant_key": "tenant"},
                "message": {"message_id": id, "chat_id": "oc_chat", "create_time": "1700000000000", **message},
            },
        }

    def text(self, text: str, *, group: bool = False, mentioned: bool = True, **more: Any) -> Json:
        mark = [{"key": "@_user_1", "id": {"open_id": BOT}, "name": "trainmedic", "tenant_key": "tenant"}]
        return {
            "chat_type": "group" if group else "p2p",
            "message_type": "text",
            "content": json.dumps({"text": f"@_user_1 {text}" if group and mentioned else text}),
            "mentions": mark if group and mentioned else [],
            **more,
        }


class FakeDingTalk:
    """The open platform and the webhook of one session."""

    client_id, client_secret = "ding-app", "ding-secret"
    webhook = "http://ding.test/robot/sendBySession?session=s1"

    def __init__(self) -> None:
        self.app = FastAPI()
        self.sent: list[Json] = []
        self.files: dict[str, bytes] = {}
        self.storage = "https://down.dingtalk.com"

        @self.app.post("/v1.0/oauth2/accessToken")
        async def token(request: Request) -> Response:
            if await request.json() != {"appKey": self.client_id, "appSecret": self.client_secret}:
                return JSONResponse({"code": "invalidClientIdOrSecret", "message": "no"}, 400)
            return JSONResponse({"accessToken": TOKEN, "expireIn": 7200})

        @self.app.post("/v1.0/robot/messageFiles/download")
        async def download(request: Request) -> Response:
            body = await request.json()
            right = request.headers.get("x-acs-dingtalk-access-token") == TOKEN and body["robotCode"] == self.client_id
            if not right or body["downloadCode"] not in self.files:
                return JSONResponse({"code": "unknownError", "message": "no"}, 400)
            return JSONResponse({"downloadUrl": f"{self.storage}/{body['downloadCode']}"})

        @self.app.get("/{code}")
        async def content(code: str) -> Response:
            return Response(self.files[code])

        @self.app.post("/robot/sendBySession")
        async def send(session: str, request: Request) -> Json:
            body = await request.json()
            if session != "s1" or body["msgtype"] != "markdown" or not body["markdown"]["title"]:
                return {"errcode": 310000, "errmsg": "session is not valid"}
            if len(json.dumps(body, ensure_ascii=False).encode()) > MAX_MARKDOWN:
                return {"errcode": 460101, "errmsg": "message too long"}
            self.sent.append(body)
            return {"errcode": 0, "errmsg": "ok"}

    def settings(self) -> Json:
        return {
            "dingtalk_client_id": self.client_id,
            "dingtalk_client_secret": self.client_secret,
            "dingtalk_api_url": "http://ding.test",
        }

    def request(self, event: Json, *, at: float | None = None, **changes: str) -> tuple[Mapping[str, str], bytes]:
        """Headers and body as the platform sends them."""
        stamp = str(round((at or time.time()) * 1000))
        digest = hmac.new(self.client_secret.encode(), f"{stamp}\n{self.client_secret}".encode(), hashlib.sha256)
        headers = {"timestamp": stamp, "sign": base64.b64encode(digest.digest()).decode(), **changes}
        return headers, json.dumps(event, ensure_ascii=False).encode()

    def message(self, text: str = "", *, id: str = "msg1", group: bool = True, **more: Any) -> Json:
        return {
            "conversationId": "cid1",
            "chatbotUserId": "$:LWCP_v1:$bot",
            "msgId": id,
            "senderNick": "Li",
            "senderStaffId": "staff1",
            "senderId": "$:LWCP_v1:$li",
            "sessionWebhookExpiredTime": 4102444800000,
            "conversationType": "2" if group else "1",
            "isInAtList": group,
            "sessionWebhook": self.webhook,
            "msgtype": "text",
            "text": {"content": f" {text}"},
            **more,
        }


def encrypted(text: str, key: str) -> str:
    """AES-256-CBC with PKCS#7, the initialisation vector in front."""
    vector = os.urandom(16)
    padder = PKCS7(128).padder()
    padded = padder.update(text.encode()) + padder.finalize()
    encryptor = Cipher(algorithms.AES(hashlib.sha256(key.encode()).digest()), modes.CBC(vector)).encryptor()
    return base64.b64encode(vector + encryptor.update(padded) + encryptor.finalize()).decode()


def markdown_of(card: str) -> str:
    content = json.loads(card)
    assert content["schema"] == "2.0"
    assert content["config"]["update_multi"] is True
    (element,) = content["body"]["elements"]
    assert element["tag"] == "markdown"
    return str(element["content"])


@asynccontextmanager
async def served(
    platform: FakeFeishu | FakeDingTalk,
    advisor: Advisor,
    answerer: Answerer | None = None,
    **settings: Any,
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a service whose bot talks to ``platform``. Leaving it waits for the answers."""
    context = AppContext(
        settings=Settings.model_validate({**platform.settings(), **settings}),
        advisor=advisor,
        answerer=answerer or TemplateAnswerer(advisor),
        executor=run_inline,
    )
    transport = httpx.ASGITransport(app=platform.app)
    (bot,) = filter(None, (package.channel_of(context, transport) for package in (dingtalk, feishu)))
    app = FastAPI()
    bot.attach(app)
    async with AsyncExitStack() as stack:
        client = httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://service.test")
        await stack.enter_async_context(client)
        await stack.enter_async_context(bot.running())
        yield client
