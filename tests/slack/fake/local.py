"""The fake Slack itself: its server in a thread, what users do, what tests see, and how they wait."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from tests.slack.fake.courier import Courier
from tests.slack.fake.files import FileServer
from tests.slack.fake.methods import content, permit
from tests.slack.fake.model import (
    ANN,
    BOT_USER,
    GENERAL,
    HISTORY_SCOPES,
    PATIENCE_S,
    Call,
    Channel,
    Delivery,
    Fault,
    HttpReply,
    Json,
    Message,
    Refusal,
    Refused,
    Said,
    SlackFile,
    Stream,
)
from tests.slack.fake.payloads import (
    callback,
    click_payload,
    command_payload,
    escaped,
    hidden_event,
    mention_event,
    message_event,
    rich_text,
    shortcut_payload,
)
from tests.slack.fake.workspace import RESPONSE_USES, Workspace

LISTS = ("blocks", "chunks")
"""Arguments that come as JSON in a form."""
POLL_S = 0.005


class LocalSlack:
    """A workspace between ``with`` and its end."""

    def __init__(self) -> None:
        self.world = Workspace()
        self.world.on_post = self._own_post
        self.deliveries: list[Delivery] = []
        self._courier = Courier(self.world)
        self.files = FileServer(self.world)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="local-slack", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(PATIENCE_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        slack, other = web.Application(client_max_size=4 * 1024 * 1024), web.Application()
        slack.router.add_route("*", "/api/{method}", self._call)
        slack.router.add_get("/link/", self._courier.serve)
        slack.router.add_get("/files-pri/{place}/{name:.*}", self.files.serve)
        slack.router.add_get("/login", self.files.login)
        slack.router.add_post("/response/{name}", self._respond)
        other.router.add_get("/{path:.*}", self.files.elsewhere)
        runners = [web.AppRunner(app, handle_signals=False, shutdown_timeout=0.2) for app in (slack, other)]
        for runner in runners:
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.world.base, self.files.other_host = (f"http://127.0.0.1:{each.addresses[0][1]}" for each in runners)
        self._ready.set()
        await self._stop.wait()
        await self._courier.close()
        for runner in runners:
            await runner.cleanup()

    # ── the Web API ──────────────────────────────────────────────────────────────────────────────────────────────────
    async def _call(self, request: web.Request) -> web.Response:
        """`ANY /api/{method}`."""
        name, args = request.match_info["method"], await self._arguments(request)
        fault = self._fault(name)
        if fault and fault.drop:
            return self._dropped(request)
        if fault:
            body: Json = {"ok": False, "error": fault.error or "ratelimited"}
            self.world.calls.append(Call(method=name, args=args, answer=body))
            if fault.status in (200, 429):
                retry = {"Retry-After": str(fault.retry_after)} if fault.status == 429 else {}
                return web.json_response(body, status=fault.status, headers=retry)
            return web.Response(status=fault.status, text="<html>Slack has trouble</html>", content_type="text/html")
        headers = {"x-oauth-scopes": ",".join(sorted(self.world.scopes))}
        status = 200
        try:
            body = {"ok": True, **self._run(request, name, args)}
        except Refused as refused:
            self.world.refuse(name, refused.error, refused.detail)
            body = refused.body()
            if "wait_s" in body:
                status, headers = 429, {"Retry-After": str(body["wait_s"])}
        self.world.calls.append(Call(method=name, args=args, answer=body))
        return web.json_response(body, status=status, headers=headers)

    async def _arguments(self, request: web.Request) -> Json:
        if request.content_type == "application/json":
            return {**request.query, **json.loads(await request.read() or b"{}")}
        args: Json = {**request.query, **await request.post()}
        return {name: json.loads(value) if name in LISTS else value for name, value in args.items()}

    def _run(self, request: web.Request, name: str, args: Json) -> Json:
        connects = name == "apps.connections.open"
        if (
            request.headers.get("Authorization")
            != f"Bearer {self.world.app_token if connects else self.world.bot_token}"
        ):
            raise Refused("invalid_auth")
        if connects:
            return {"url": self._courier.open_link()}
        return permit(self.world, name, args).run(self.world, args)

    def _fault(self, name: str) -> Fault | None:
        """The next fault of a method, used once."""
        faults = self.world.faults[name]
        if not faults:
            return None
        fault = faults[0]
        if fault.times is not None:
            fault.times -= 1
            if not fault.times:
                faults.pop(0)
        return fault

    def _dropped(self, request: web.Request) -> web.Response:
        if request.transport is not None:
            request.transport.close()
        return web.Response()

    async def _respond(self, request: web.Request) -> web.Response:
        """`POST /response/{name}`: five uses, then 404 in plain text."""
        target = self.world.response_urls[request.match_info["name"]]
        if target.uses >= RESPONSE_USES:
            self.world.refuse("response_url", "used_url")
            return web.Response(status=404, text="used_url")
        target.uses += 1
        args = json.loads(await request.read())
        try:
            message = content(args)
        except Refused as refused:
            self.world.refuse("response_url", refused.error, refused.detail)
            return web.Response(status=400, text=refused.error)
        self.world.write(target.channel, args, message, ephemeral_to=target.user)
        return web.json_response({"ok": True})

    # ── addresses and tokens ─────────────────────────────────────────────────────────────────────────────────────────
    @property
    def api_url(self) -> str:
        """``base_url`` of a slack_sdk client."""
        return f"{self.world.base}/api/"

    # ── faults ───────────────────────────────────────────────────────────────────────────────────────────────────────
    def fault(self, method: str, fault: Fault) -> None:
        """Let a method fail; several faults of a method happen one after the other."""
        self.world.faults[method].append(fault)

    def disconnect(self, reason: str = "warning") -> None:
        """Tell all connections to go; ``cut`` breaks them."""
        asyncio.run_coroutine_threadsafe(self._courier.disconnect(reason), self._loop).result(PATIENCE_S)

    # ── HTTP ─────────────────────────────────────────────────────────────────────────────────────────────────────────
    async def post(self, url: str, body: Json | None = None, **options: Any) -> HttpReply:
        """One signed request to the bot's endpoint; ``options`` are those of `Courier.post`."""
        sending = asyncio.run_coroutine_threadsafe(self._courier.post(url, body, **options), self._loop)
        return await asyncio.wrap_future(sending)

    # ── what users do ────────────────────────────────────────────────────────────────────────────────────────────────
    def add_channel(self, name: str) -> str:
        """A new channel with Ann and the bot; its id."""
        members = frozenset({ANN, BOT_USER})
        channel = Channel(id=self.world.new_id("C"), name=name, kind="channel", members=members)
        self.world.channels[channel.id] = channel
        return channel.id

    def upload(self, name: str, content: str | bytes, **fields: Any) -> SlackFile:
        """A file, to be attached to a message; ``fields`` are those of `SlackFile`."""
        raw = content.encode() if isinstance(content, str) else content
        file = SlackFile(id=self.world.new_id("F"), name=name, content=raw, **fields)
        self.world.files[file.id] = file
        return file

    def stored(self, text: str, *, user: str, channel: str = GENERAL, thread_ts: str | None = None) -> Message:
        """A user's message from before the bot was connected."""
        ts = self.world.new_ts()
        message = Message(channel=channel, ts=ts, user=user, text=escaped(text), thread_ts=thread_ts)
        return self.world.store(message)

    def says(
        self,
        text: str,
        *,
        channel: str = GENERAL,
        user: str = ANN,
        thread_ts: str | None = None,
        files: Sequence[SlackFile] = (),
        bot: bool = False,
    ) -> Said:
        """A user, or another app if ``bot``, writes ``text`` as typed; ``<@U0BOT>`` is a mention."""
        message = self.stored(text, user=user, channel=channel, thread_ts=thread_ts)
        message.blocks = rich_text(text)
        message.files = [file.wire(self.world.base) for file in files]
        message.bot_id, message.subtype = "B0OTHER" if bot else None, "file_share" if files else None
        events: list[Json] = []
        if self.world.channels[channel].kind != "im" and f"<@{BOT_USER}>" in text:
            events.append(mention_event(message))
        if self._hears(channel):
            events.append(message_event(self.world, message))
        return Said(message=message, deliveries=tuple(map(self.event, events)))

    def _hears(self, channel: str) -> bool:
        place = self.world.channels[channel]
        return HISTORY_SCOPES[place.kind] in self.world.scopes and BOT_USER in place.members

    def _own_post(self, what: str, message: Message) -> None:
        if self._hears(message.channel):
            posted = what == "posted"
            self.event(message_event(self.world, message) if posted else hidden_event(self.world, what, message))

    def edits(self, ts: str, text: str) -> Delivery:
        """A user changes a message."""
        message = self.message(ts)
        message.text, message.blocks = escaped(text), rich_text(text)
        return self.event(hidden_event(self.world, "edited", message))

    def deletes(self, ts: str) -> Delivery:
        """A user deletes a message."""
        message = self.message(ts)
        self.world.messages.remove(message)
        return self.event(hidden_event(self.world, "deleted", message))

    def stops(self, ts: str, user: str = ANN) -> Delivery:
        """A user presses Slack's Stop button on a stream; Slack ends the stream before the bot hears of it."""
        message = self.message(ts)
        self.world.streams[ts].end("stopped_by_user")
        event = {"type": "agent_session_stopped", "channel": message.channel, "thread_ts": message.thread_ts}
        return self.event({**event, "user": user, "streaming_message_ts": [ts], "event_ts": self.world.new_ts()})

    def event(self, event: Json) -> Delivery:
        return self._send(Delivery(kind="events_api", payload=callback(self.world, event)))

    def redeliver(self, delivery: Delivery) -> None:
        """The same payload and event id once more, in a new envelope."""
        self._loop.call_soon_threadsafe(lambda: self._courier.send(delivery, again=True))

    def command(self, text: str, *, channel: str = GENERAL, user: str = ANN) -> Delivery:
        """A user types the slash command; the text of its acknowledgement is shown."""

        def show(reply: Any) -> None:
            if reply:
                self.world.write(channel, reply, content(reply), ephemeral_to=user)

        payload = command_payload(self.world, "/trainmedic", text, channel, user)
        return self._send(Delivery(kind="slash_commands", payload=payload, on_ack=show))

    def clicks(self, message: Message, action_id: str, *, user: str = ANN, positive: bool | None = None) -> Delivery:
        """A user clicks an element of a message; ``positive`` picks a feedback button."""
        elements = {
            element["action_id"]: (block, element)
            for block in message.blocks
            for element in block.get("elements", ())
            if "action_id" in element
        }
        assert action_id in elements, f"no {action_id} to click, only {sorted(elements)}"
        block, element = elements[action_id]
        clicked: Mapping[str, Any] = element
        if element["type"] == "feedback_buttons":
            assert positive is not None, "positive or negative?"
            clicked = element["positive_button" if positive else "negative_button"]
        fields = {name: clicked[name] for name in ("text", "value", "style") if name in clicked}
        action = {"type": element["type"], "action_id": action_id, **fields}
        payload = click_payload(self.world, message, block, action, user)
        return self._send(Delivery(kind="interactive", payload=payload))

    def shortcut(self, callback_id: str, ts: str, *, user: str = ANN) -> Delivery:
        """A user picks a shortcut from a message's menu."""
        payload = shortcut_payload(self.world, callback_id, self.message(ts), user)
        return self._send(Delivery(kind="interactive", payload=payload))

    def _send(self, delivery: Delivery) -> Delivery:
        self.deliveries.append(delivery)
        self._loop.call_soon_threadsafe(self._courier.send, delivery)
        return delivery

    # ── what tests see ───────────────────────────────────────────────────────────────────────────────────────────────
    def messages(self, channel: str | None = None, thread_ts: str | None = None) -> list[Message]:
        """What the bot has posted for everybody, in order."""
        return [
            message
            for message in list(self.world.messages)
            if message.sent
            and message.ephemeral_to is None
            and channel in (None, message.channel)
            and thread_ts in (None, message.thread_ts)
        ]

    def ephemerals(self, user: str | None = None) -> list[Message]:
        """What only one user sees."""
        return [
            message
            for message in list(self.world.messages)
            if message.ephemeral_to and user in (None, message.ephemeral_to)
        ]

    def message(self, ts: str) -> Message:
        return next(message for message in self.world.messages if message.ts == ts)

    def replies(self, ts: str) -> list[Message]:
        """All replies to a message, by anybody."""
        return [message for message in list(self.world.messages) if message.thread_ts == ts and message.ts != ts]

    def calls(self, method: str | None = None) -> list[Call]:
        """Web API calls, refused ones too."""
        return [call for call in list(self.world.calls) if method in (None, call.method)]

    def count(self, method: str) -> int:
        return len(self.calls(method))

    @property
    def streams(self) -> list[Stream]:
        return list(self.world.streams.values())

    @property
    def connections(self) -> int:
        """Live Socket Mode connections that payloads go to."""
        return sum(not link.retired for link in list(self._courier.links))

    def refused(self, error: str, where: str | None = None) -> list[Refusal]:
        """The refusals with this error, which are expected from now on; there must be one."""
        refusals = self._refusals(error, where)
        assert refusals, f"nothing was refused with {error}, only {self.world.refusals}"
        for refusal in refusals:
            refusal.expected = True
        return refusals

    def _refusals(self, error: str, where: str | None) -> list[Refusal]:
        return [each for each in list(self.world.refusals) if each.error == error and where in (None, each.where)]

    def assert_nothing_unexpected(self) -> None:
        """Fail if the bot was refused something that no test has asserted."""
        unexpected = [refusal for refusal in self.world.refusals if not refusal.expected]
        assert not unexpected, f"refused: {unexpected}"

    # ── waiting ──────────────────────────────────────────────────────────────────────────────────────────────────────
    def wait(self, true: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
        """Block until ``true()``."""
        deadline = time.monotonic() + patience_s
        while not true():
            assert time.monotonic() < deadline, f"waited {patience_s} s in vain for {what}"
            time.sleep(POLL_S)

    async def until(self, true: Callable[[], bool], what: str) -> None:
        """Let the event loop run until ``true()``."""
        deadline = time.monotonic() + PATIENCE_S
        while not true():
            refusals = self.world.refusals
            assert time.monotonic() < deadline, f"waited {PATIENCE_S} s in vain for {what}; refused: {refusals}"
            await asyncio.sleep(POLL_S)

    def until_connected(self, times: int = 1) -> Awaitable[None]:
        """Wait for the bot's Socket Mode connection of this number."""
        return self.until(lambda: self._courier.opened >= times and self.connections > 0, f"connection {times}")

    def until_acked(self, delivery: Delivery) -> Awaitable[None]:
        return self.until(lambda: delivery.acked, "an acknowledgement in time")

    async def until_call(self, method: str, times: int = 1) -> Call:
        """The call of a method with this number."""
        await self.until(lambda: self.count(method) >= times, f"call {times} of {method}")
        return self.calls(method)[times - 1]

    async def until_refused(self, error: str, where: str | None = None) -> list[Refusal]:
        """Wait for a refusal, which is expected then."""
        await self.until(lambda: bool(self._refusals(error, where)), error)
        return self.refused(error, where)

    async def until_said(
        self, part: str = "", *, channel: str | None = None, thread_ts: str | None = None, finished: bool = True
    ) -> Message:
        """The bot's first message that shows ``part``; a finished one is not streaming any more."""

        def matches() -> list[Message]:
            streaming = [stream.ts for stream in self.streams if stream.state == "streaming"] if finished else []
            messages = self.messages(channel, thread_ts)
            return [message for message in messages if part in message.shown and message.ts not in streaming]

        await self.until(lambda: bool(matches()), f"{part!r}")
        return matches()[0]

    async def until_whispered(self, part: str = "", *, user: str | None = None) -> Message:
        """The first ephemeral message that shows ``part``."""

        def matches() -> list[Message]:
            return [message for message in self.ephemerals(user) if part in message.shown]

        await self.until(lambda: bool(matches()), f"{part!r} for {user or 'anybody'} alone")
        return matches()[0]
