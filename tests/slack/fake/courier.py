"""How payloads reach the bot: Socket Mode envelopes or signed HTTP requests, to be acknowledged within three seconds.

An event that is not acknowledged is delivered again; a click or a command is not.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Coroutine, Mapping
from typing import Any
from urllib.parse import urlencode

import aiohttp
from aiohttp import web
from slack_sdk.signature import SignatureVerifier

from tests.slack.fake.model import APP, Attempt, Delivery, HttpReply, Json
from tests.slack.fake.workspace import Workspace

ACK_WITHIN_S = 3.0
RETRY_WAITS_S = (0.0, 60.0, 300.0)


class Link:
    """One WebSocket connection. ``retired`` after a disconnect message: nothing new goes over it."""

    def __init__(self, socket: web.WebSocketResponse, request: web.Request) -> None:
        self.socket, self.request = socket, request
        self.retired = False
        self.closed = asyncio.Event()


class Courier:
    """Sends payloads, and keeps what happened to them. It runs on the fake's event loop."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.links: list[Link] = []
        self.opened = 0
        self._tickets: set[str] = set()
        self._reachable = asyncio.Event()
        self._turn = itertools.count()
        self._unacknowledged: dict[str, tuple[Attempt, float, asyncio.Event]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    # ── Socket Mode ──────────────────────────────────────────────────────────────────────────────────────────────────
    def open_link(self) -> str:
        """The address of one connection."""
        ticket = self.workspace.new_id("ticket")
        self._tickets.add(ticket)
        return f"{self.workspace.base.replace('http', 'ws', 1)}/link/?ticket={ticket}&app_id={APP}"

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """`GET /link/`: one connection from hello to its end."""
        ticket = request.query.get("ticket", "")
        if ticket not in self._tickets:
            self.workspace.refuse("socket", "invalid_ticket")
            return web.Response(status=403)
        self._tickets.remove(ticket)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        link = Link(socket, request)
        self.links.append(link)
        self.opened += 1
        hello = {"type": "hello", "num_connections": len(self.links), "connection_info": {"app_id": APP}}
        await socket.send_json(hello)
        self._changed()
        try:
            async for frame in socket:
                if frame.type is aiohttp.WSMsgType.TEXT:
                    self._acknowledged(json.loads(frame.data))
        finally:
            self.links.remove(link)
            link.closed.set()
            self._changed()
        return socket

    def _changed(self) -> None:
        usable = any(not link.retired for link in self.links)
        (self._reachable.set if usable else self._reachable.clear)()

    async def disconnect(self, reason: str) -> None:
        """Tell every connection to go, as Slack does; ``cut`` breaks them without a closing handshake."""
        for link in list(self.links):
            link.retired = True
            if reason == "cut":
                assert link.request.transport is not None
                link.request.transport.abort()
            else:
                await link.socket.send_json({"type": "disconnect", "reason": reason, "debug_info": {"host": "local"}})
        self._changed()

    def _acknowledged(self, frame: Json) -> None:
        if frame.get("envelope_id") not in self._unacknowledged:
            self.workspace.refuse("socket", "unknown_envelope", str(frame))
            return
        attempt, sent_at, event = self._unacknowledged.pop(frame["envelope_id"])
        attempt.ack_s, attempt.reply = time.monotonic() - sent_at, frame.get("payload")
        event.set()

    async def _by_socket(self, delivery: Delivery, attempt: Attempt) -> str:
        usable = [link for link in self.links if not link.retired]
        link, acknowledged = usable[next(self._turn) % len(usable)], asyncio.Event()
        envelope = {
            "envelope_id": attempt.id,
            "type": delivery.kind,
            "accepts_response_payload": delivery.kind != "events_api",
            "payload": delivery.payload,
            "retry_attempt": len(delivery.attempts) - 1,
        }
        self._unacknowledged[attempt.id] = attempt, time.monotonic(), acknowledged
        await link.socket.send_json(envelope)
        waits = [asyncio.ensure_future(event.wait()) for event in (acknowledged, link.closed)]
        try:
            await asyncio.wait(waits, timeout=ACK_WITHIN_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if acknowledged.is_set():
            return "acked"
        if link.closed.is_set():
            return "connection_closed"
        attempt.late = True
        self.workspace.refuse("socket", "not_acknowledged", str(delivery.payload)[:200])
        return "timeout"

    # ── HTTP ─────────────────────────────────────────────────────────────────────────────────────────────────────────
    async def post(
        self,
        url: str,
        body: Json | None = None,
        *,
        form: Json | None = None,
        secret: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> HttpReply:
        """One signed request, with ``secret`` instead of the workspace's signing secret."""
        raw = json.dumps(body) if form is None else urlencode(form)
        kind = "json" if form is None else "x-www-form-urlencoded"
        stamp = str(int(time.time()))
        signature = SignatureVerifier(secret or self.workspace.signing_secret).generate_signature(
            timestamp=stamp, body=raw
        )
        signed = {
            "Content-Type": f"application/{kind}",
            "X-Slack-Request-Timestamp": stamp,
            "X-Slack-Signature": str(signature),
        }
        timeout = aiohttp.ClientTimeout(total=ACK_WITHIN_S)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(url, data=raw.encode(), headers={**signed, **(headers or {})}) as answer,
        ):
            return HttpReply(status=answer.status, body=await answer.text())

    # ── deliveries ───────────────────────────────────────────────────────────────────────────────────────────────────
    def send(self, delivery: Delivery, *, again: bool = False) -> None:
        """Begin a delivery, or one more attempt of it."""
        retries = () if again or delivery.kind != "events_api" else RETRY_WAITS_S
        self._begin(self._deliver(delivery, (0.0, *retries)))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _deliver(self, delivery: Delivery, waits_s: tuple[float, ...]) -> None:
        for wait_s in waits_s:
            await asyncio.sleep(wait_s)
            await self._reachable.wait()
            attempt = Attempt(id=self.workspace.new_id("envelope"))
            delivery.attempts.append(attempt)
            if await self._by_socket(delivery, attempt) == "acked":
                if delivery.on_ack is not None:
                    delivery.on_ack(attempt.reply)
                return

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for link in list(self.links):
            await link.socket.close()
