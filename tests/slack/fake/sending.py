"""How payloads reach the bot: Socket Mode envelopes or signed HTTP requests, acknowledged within three seconds.

Events that are not come again under the same event id; a click or a command does not: its user sees an error.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import itertools
import json
import time
import uuid
from typing import Any
from urllib.parse import urlencode

import aiohttp
from aiohttp import web

from tests.slack.fake.values import APP, Attempt, Delivery, HttpReply, Json, Refused
from tests.slack.fake.world import World

CONNECTIONS_MOST = 10
REDIRECTS_MOST = 2
WARNED_S = 10.0
"""How long after its warning a connection is closed."""


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Slack's signature of a request: v0 and the HMAC-SHA256 of ``v0:timestamp:body``."""
    return "v0=" + hmac.new(secret.encode(), b"v0:" + timestamp.encode() + b":" + body, hashlib.sha256).hexdigest()


class Link:
    """One WebSocket connection. ``retired`` after a disconnect message: nothing new goes over it."""

    def __init__(self, socket: web.WebSocketResponse, request: web.Request) -> None:
        self.socket = socket
        self.request = request
        self.retired = False
        self.closed = asyncio.Event()


class Courier:
    """Sends payloads and keeps what became of them. Everything here runs on the fake's loop."""

    def __init__(self, world: World, *, ack_within_s: float, retry_waits_s: tuple[float, ...]) -> None:
        self.world = world
        self.ack_within_s = ack_within_s
        self.retry_waits_s = retry_waits_s
        self.links: list[Link] = []
        self.tickets: set[str] = set()
        self.target: str | None = None
        self.ghosts = 0
        self.refusing_links = 0
        self.opened = 0
        self._reachable = asyncio.Event()
        self._turn = itertools.count()
        self._sent: dict[str, tuple[Attempt, asyncio.Event]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    # ── connections ──────────────────────────────────────────────────────────────────────────────────────────────────
    def open_link(self) -> str:
        """An address for one connection."""
        ticket = uuid.uuid4().hex
        self.tickets.add(ticket)
        return f"{self.world.base.replace('http', 'ws', 1)}/link/?ticket={ticket}"

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """`GET /link/`: one connection from hello to its end."""
        ticket = request.query.get("ticket", "")
        if self.refusing_links > 0:
            self.refusing_links -= 1
            return web.Response(status=503, text="try again")
        if ticket not in self.tickets:
            self.world.refuse("socket", "invalid_ticket")
            return web.Response(status=403, text="invalid ticket")
        self.tickets.remove(ticket)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        if len(self.links) >= CONNECTIONS_MOST:
            self.world.refuse("socket", "too_many_websockets")
            await socket.send_json({"type": "disconnect", "reason": "too_many_websockets", "debug_info": {"host": "x"}})
            await socket.close()
            return socket
        link = Link(socket, request)
        self.links.append(link)
        self.opened += 1
        await socket.send_json(self._hello())
        self._arrived()
        try:
            async for frame in socket:
                if frame.type is aiohttp.WSMsgType.TEXT:
                    self._acknowledged(frame.data)
        finally:
            self.links.remove(link)
            link.closed.set()
            self._arrived()
        return socket

    def _hello(self) -> Json:
        debug = {"host": "local", "build_number": 1, "started": "now", "approximate_connection_time": 3600}
        return {
            "type": "hello",
            "num_connections": len(self.links) + self.ghosts,
            "debug_info": debug,
            "connection_info": {"app_id": APP},
        }

    def _arrived(self) -> None:
        usable = self.target is not None or any(not link.retired for link in self.links)
        (self._reachable.set if usable else self._reachable.clear)()
        self.world.notify()

    async def disconnect(self, reason: str) -> None:
        """Tell every connection to go, as Slack does; the sockets stay open a while, unless it is switched off."""
        for link in list(self.links):
            link.retired = True
            self._arrived()
            await link.socket.send_json({"type": "disconnect", "reason": reason, "debug_info": {"host": "local"}})
            if reason == "link_disabled":
                await link.socket.close()
            else:
                self._begin(self._close_later(link))

    async def _close_later(self, link: Link) -> None:
        await asyncio.sleep(WARNED_S)
        if not link.closed.is_set():
            await link.socket.close()

    async def cut(self) -> None:
        """Break every connection without a closing handshake."""
        for link in list(self.links):
            link.retired = True
            if link.request.transport is not None:
                link.request.transport.abort()
        self._arrived()

    def send_to(self, url: str | None) -> None:
        """Deliver by HTTP to this address; None: by Socket Mode."""
        self.target = url
        self._arrived()

    # ── deliveries ───────────────────────────────────────────────────────────────────────────────────────────────────
    def send(self, delivery: Delivery) -> None:
        """Begin a delivery."""
        self._begin(self._deliver(delivery))

    def again(self, delivery: Delivery, reason: str) -> None:
        """Send one more attempt, whatever became of the earlier ones."""
        self._begin(self._one_more(delivery, reason))

    def _begin(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """End all deliveries and connections."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for link in list(self.links):
            await link.socket.close()

    async def _one_more(self, delivery: Delivery, reason: str) -> None:
        await self._reachable.wait()
        if await self._attempt(delivery, reason) != "acked":
            delivery.given_up = True
            self.world.notify()

    async def _deliver(self, delivery: Delivery) -> None:
        """All attempts of one delivery."""
        if delivery.kind != "events_api":
            await self._deliver_once(delivery)
            return
        outcome = ""
        for wait in (0.0, *self.retry_waits_s):
            if wait:
                await asyncio.sleep(wait)
            await self._reachable.wait()
            outcome = await self._attempt(delivery, outcome)
            if outcome in ("acked", "no_retry"):
                break
        delivery.given_up = outcome != "acked"
        self.world.notify()

    async def _deliver_once(self, delivery: Delivery) -> None:
        if not self._reachable.is_set():
            delivery.user_saw = "dispatch_failed"
        elif await self._attempt(delivery, "") != "acked":
            delivery.user_saw = "operation_timeout"
            self.world.refuse(delivery.kind, "user_saw_an_error", json.dumps(delivery.payload)[:200])
        self.world.notify()

    async def _attempt(self, delivery: Delivery, reason: str) -> str:
        """One sending; "acked", "no_retry", or why it failed."""
        attempt = Attempt(
            envelope_id=str(uuid.uuid4()),
            retry_attempt=len(delivery.attempts),
            retry_reason=reason,
            sent_at=time.monotonic(),
        )
        delivery.attempts.append(attempt)
        outcome = await (self._by_http(delivery, attempt) if self.target else self._by_socket(delivery, attempt))
        if outcome == "acked" and delivery.on_ack is not None:
            try:
                delivery.on_ack(attempt.payload)
            except Refused as refused:
                self.world.refuse("ack", refused.error, "; ".join(refused.messages))
        self.world.notify()
        return outcome

    # ── Socket Mode ──────────────────────────────────────────────────────────────────────────────────────────────────
    async def _by_socket(self, delivery: Delivery, attempt: Attempt) -> str:
        usable = [link for link in self.links if not link.retired]
        place = next(self._turn) % (len(usable) + self.ghosts)
        if place >= len(usable):
            self.world.notify()
            await asyncio.sleep(self.ack_within_s)
            return "timeout"
        link = usable[place]
        acknowledged = asyncio.Event()
        self._sent[attempt.envelope_id] = attempt, acknowledged
        envelope: Json = {
            "envelope_id": attempt.envelope_id,
            "type": delivery.kind,
            "accepts_response_payload": delivery.kind != "events_api",
            "payload": delivery.payload,
        }
        if delivery.kind == "events_api":
            envelope.update(retry_attempt=attempt.retry_attempt, retry_reason=attempt.retry_reason)
        attempt.sent_at = time.monotonic()
        try:
            await link.socket.send_json(envelope)
        except ConnectionError:
            return "connection_closed"
        self.world.notify()
        waits = {asyncio.ensure_future(acknowledged.wait()), asyncio.ensure_future(link.closed.wait())}
        try:
            await asyncio.wait(waits, timeout=self.ack_within_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if acknowledged.is_set():
            return "acked"
        if link.closed.is_set():
            return "connection_closed"
        attempt.late = True
        self.world.refuse("socket", "not_acknowledged", json.dumps(delivery.payload)[:200])
        return "timeout"

    def _acknowledged(self, text: str) -> None:
        """Take an acknowledgement, its time measured from the sending; a new connection may carry it."""
        try:
            frame = json.loads(text)
            attempt, acknowledged = self._sent.pop(frame["envelope_id"])
        except (ValueError, KeyError, TypeError):
            self.world.refuse("socket", "unknown_envelope", text[:200])
            return
        attempt.ack_s = time.monotonic() - attempt.sent_at
        attempt.payload = frame.get("payload")
        acknowledged.set()
        self.world.notify()

    # ── HTTP ─────────────────────────────────────────────────────────────────────────────────────────────────────────
    async def _by_http(self, delivery: Delivery, attempt: Attempt) -> str:
        assert self.target is not None
        form: dict[str, str] | None = None
        if delivery.kind == "slash_commands":
            form = delivery.payload
        elif delivery.kind == "interactive":
            form = {"payload": json.dumps(delivery.payload)}
        headers = {}
        if attempt.retry_attempt:
            headers = {
                "X-Slack-Retry-Num": str(attempt.retry_attempt),
                "X-Slack-Retry-Reason": attempt.retry_reason or "http_error",
            }
        attempt.sent_at = time.monotonic()
        try:
            reply = await self.post(self.target, delivery.payload, form=form, headers=headers)
        except TimeoutError:
            attempt.late = True
            return self._failed("http_timeout")
        except aiohttp.TooManyRedirects:
            return self._failed("too_many_redirects")
        except aiohttp.ClientError:
            return self._failed("connection_failed")
        if reply.status >= 300:
            stop = reply.headers.get("X-Slack-No-Retry") == "1"
            reason = self._failed("http_error", f"{reply.status} {reply.body[:200]}")
            return "no_retry" if stop else reason
        attempt.ack_s = time.monotonic() - attempt.sent_at
        attempt.payload = _acked_with(reply)
        return "acked"

    def _failed(self, reason: str, detail: str = "") -> str:
        self.world.refuse("http", reason, detail)
        return reason

    async def post(
        self,
        url: str,
        body: Any,
        *,
        form: dict[str, str] | None = None,
        secret: str | None = None,
        at: float | str | None = None,
        signed: str | None = "",
        headers: dict[str, str] | None = None,
    ) -> HttpReply:
        """One request, signed as told: ``signed`` None: not at all, "": rightly, else this very text."""
        if form is not None:
            raw, kind = urlencode(form).encode(), "application/x-www-form-urlencoded"
        else:
            raw, kind = body if isinstance(body, bytes) else json.dumps(body).encode(), "application/json"
        stamp = at if isinstance(at, str) else str(int(self.world.clock.now() if at is None else at))
        sent = {"Content-Type": kind, "User-Agent": "Slackbot 1.0", **(headers or {})}
        if signed is not None:
            secret = self.world.signing_secret if secret is None else secret
            sent["X-Slack-Request-Timestamp"] = stamp
            sent["X-Slack-Signature"] = signed or signature(secret, stamp, raw)
        timeout = aiohttp.ClientTimeout(total=self.ack_within_s)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(url, data=raw, headers=sent, max_redirects=REDIRECTS_MOST + 1) as answer,
        ):
            return HttpReply(status=answer.status, body=await answer.text(), headers=dict(answer.headers))


def _acked_with(reply: HttpReply) -> Any:
    """What an HTTP answer says to the user: JSON, text, or nothing."""
    try:
        return json.loads(reply.body) if reply.body else None
    except ValueError:
        return {"text": reply.body}
