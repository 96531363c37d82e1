"""The local Slack itself: the server in its thread, and the switches that make it misbehave."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

from aiohttp import web

from tests.slack.fake.acting import Acts, Reason
from tests.slack.fake.chat import content
from tests.slack.fake.files import Files
from tests.slack.fake.seeing import Sees
from tests.slack.fake.sending import Courier
from tests.slack.fake.values import BOT, BOT_USER, PATIENCE_S, Delivery, Fault, HttpReply, Json, Message, Refused
from tests.slack.fake.webapi import WebApi
from tests.slack.fake.world import RESPONSE_LIFE_S, RESPONSE_USES, Clock, ResponseUrl, World

T = TypeVar("T")


class LocalSlack(Acts, Sees):
    """A workspace between ``with`` and its end. See the package's docstring for all that it does.

    ``ack_within_s`` and ``retry_waits_s`` are Slack's 3 s and (0, 60, 300) s; tests of late answers may shorten them.
    ``tiers`` False: no rate limits. ``echo`` False: the bot is not told of its own posts.
    """

    def __init__(
        self,
        *,
        ack_within_s: float = 3.0,
        retry_waits_s: tuple[float, ...] = (0.0, 60.0, 300.0),
        tiers: bool = True,
        agent_view: bool = True,
        echo: bool = True,
    ) -> None:
        self.world = World(tiers=tiers, agent_view=agent_view)
        self.files = Files(self.world)
        self.courier = Courier(self.world, ack_within_s=ack_within_s, retry_waits_s=retry_waits_s)
        self.deliveries: list[Delivery] = []
        self.echo = echo
        self.world.on_post = self.own_post
        self._api = WebApi(self.world, self.files, self.courier.open_link)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="local-slack", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(PATIENCE_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        app = web.Application(client_max_size=4 * 1024 * 1024)
        app.router.add_route("*", "/api/{method}", self._api.serve)
        app.router.add_get("/link/", self.courier.serve)
        app.router.add_get("/files-pri/{place}/{name:.*}", self.files.serve)
        app.router.add_get("/login", self.files.login)
        app.router.add_post("/response/{name}", self._respond)
        other = web.Application()
        other.router.add_get("/{path:.*}", self.files.other_host)
        runners = [web.AppRunner(each, handle_signals=False, shutdown_timeout=0.2) for each in (app, other)]
        addresses = []
        for runner in runners:
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            addresses.append(f"http://127.0.0.1:{runner.addresses[0][1]}")
        self.world.base, self.files.elsewhere = addresses
        self._ready.set()
        await self._stop.wait()
        await self.courier.close()
        for runner in runners:
            await runner.cleanup()

    # ── where and who ────────────────────────────────────────────────────────────────────────────────────────────────
    @property
    def url(self) -> str:
        """Where it listens; its files are below this address too."""
        return self.world.base

    @property
    def api_url(self) -> str:
        """``base_url`` of a slack_sdk client."""
        return f"{self.world.base}/api/"

    @property
    def bot_token(self) -> str:
        """The token of the bot."""
        return self.world.bot_token

    @property
    def app_token(self) -> str:
        """The token that opens Socket Mode connections."""
        return self.world.app_token

    @property
    def signing_secret(self) -> str:
        """What HTTP deliveries are signed with."""
        return self.world.signing_secret

    @property
    def clock(self) -> Clock:
        """The time that response_urls, triggers, idle streams and rates go by."""
        return self.world.clock

    @property
    def scopes(self) -> set[str]:
        """The bot's scopes; take some away."""
        return self.world.scopes

    @property
    def subscriptions(self) -> set[str]:
        """The events that the app has subscribed to."""
        return self.world.subscriptions

    # ── misbehaviour ─────────────────────────────────────────────────────────────────────────────────────────────────
    def fault(self, method: str, fault: Fault) -> None:
        """Let a method go wrong; several faults come one after the other."""
        self.world.faults[method].append(fault)

    def heal(self, method: str) -> None:
        """End all faults of a method."""
        self.world.faults.pop(method, None)

    def disconnect(self, reason: Reason = "warning") -> None:
        """Tell all connections to go."""
        self._now(self.courier.disconnect(reason))

    def cut(self) -> None:
        """Break all connections without a closing handshake."""
        self._now(self.courier.cut())

    def refuse_links(self, times: int) -> None:
        """Let the next connections fail at the handshake."""
        self.courier.refusing_links = times

    @property
    def ghosts(self) -> int:
        """Half-open connections that swallow payloads."""
        return self.courier.ghosts

    @ghosts.setter
    def ghosts(self, number: int) -> None:
        self.courier.ghosts = number

    # ── HTTP ─────────────────────────────────────────────────────────────────────────────────────────────────────────
    def send_to(self, url: str | None) -> None:
        """Deliver by HTTP to this address; None: by Socket Mode."""
        self.loop.call_soon_threadsafe(self.courier.send_to, url)

    async def post(
        self,
        url: str,
        body: Any = None,
        *,
        form: dict[str, str] | None = None,
        secret: str | None = None,
        at: float | str | None = None,
        signature: str | None = "",
        headers: dict[str, str] | None = None,
    ) -> HttpReply:
        """One request to the bot's HTTP endpoint: rightly signed, unless told otherwise.

        ``secret`` is another signing secret, ``at`` another time (or any text as time), ``signature`` any text, or None
        for no signature at all. ``body`` is JSON, or bytes as they are.
        """
        sending = self.courier.post(url, body, form=form, secret=secret, at=at, signed=signature, headers=headers)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(sending, self.loop))

    async def verify(self, url: str) -> HttpReply:
        """The challenge with which Slack tries an address."""
        return await self.post(url, {"type": "url_verification", "token": "legacy-token", "challenge": "local"})

    # ── response_url ─────────────────────────────────────────────────────────────────────────────────────────────────
    async def _respond(self, request: web.Request) -> web.Response:
        """`POST /response/{name}`: five uses in half an hour, then 404 in plain text."""
        found = self.world.response_urls.get(request.match_info["name"])
        error = ""
        if found is None or found.uses >= RESPONSE_USES:
            error = "used_url"
        elif self.world.clock.now() - found.made_at > RESPONSE_LIFE_S:
            error = "expired_url"
        if found is None or error:
            self.world.refuse("response_url", error)
            return web.Response(status=404, text=error)
        try:
            args = json.loads(await request.read())
            if not isinstance(args, dict):
                raise Refused("invalid_payload")
            self._write(found, args)
        except (Refused, ValueError) as refused:
            error = refused.error if isinstance(refused, Refused) else "invalid_payload"
            self.world.refuse("response_url", error, str(getattr(refused, "messages", "")))
            return web.Response(status=400, text=error)
        found.uses += 1
        return web.json_response({"ok": True})

    def _write(self, target: ResponseUrl, args: Json) -> None:
        """What a response_url is used for: a new message, or the replacement or deletion of the one clicked on."""
        source = next((each for each in self.world.messages if each.ts == target.source_ts), None)
        if args.get("delete_original"):
            if source is not None and source.bot_id == BOT:
                self.world.remove(source)
            return
        made = content(args)
        if args.get("replace_original") and source is not None and source.bot_id == BOT:
            self.world.edit(source, **made, sent=args)
            return
        thread = args.get("thread_ts")
        if thread is not None and self.world.find(target.channel, str(thread)) is None:
            raise Refused("thread_not_found")
        public = args.get("response_type", "ephemeral") == "in_channel"
        self.world.store(
            Message(
                channel=target.channel,
                ts=self.world.new_ts(),
                user=BOT_USER,
                bot_id=BOT,
                thread_ts=thread,
                ephemeral_to=None if public else target.user,
                sent=args,
                **made,
            )
        )

    def _now(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE_S)
