"""The bot: events from Slack, acknowledged within three seconds and passed to the handler.

These are plain listeners of slack_bolt's `AsyncApp`. Bolt acknowledges events before it runs a listener; clicks,
commands and shortcuts are acknowledged here first. Slack repeats anything that is not acknowledged, so the last
listeners match everything.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import aiohttp
import httpx
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.context.ack.async_ack import AsyncAck
from slack_sdk.web.async_client import AsyncWebClient

from trainmedic.kb.trace import trace_of
from trainmedic.ui.channels.files import Downloads
from trainmedic.ui.channels.handler import Handler
from trainmedic.ui.channels.messages import messages
from trainmedic.ui.channels.slack.calls import Calls, SlackLost, SlackRefused
from trainmedic.ui.channels.slack.clicks import place_of, react
from trainmedic.ui.channels.slack.destination import SlackDestination
from trainmedic.ui.channels.slack.files import HOSTS, SlackFiles
from trainmedic.ui.channels.slack.incoming import IncomingMessage, is_written, mentions
from trainmedic.ui.channels.slack.live import Streams
from trainmedic.ui.channels.slack.post import Place, Poster
from trainmedic.ui.channels.slack.scopes import Identity, check_app_token, identify
from trainmedic.ui.channels.slack.settings import SlackSettings
from trainmedic.ui.channels.slack.workspace import Workspace
from trainmedic.ui.channels.tasks import SHUTDOWN_S
from trainmedic.ui.context import AppContext

log = logging.getLogger("trainmedic.slack")
bolt_log = logging.getLogger("trainmedic.slack.bolt")
bolt_log.setLevel(logging.INFO)  # below that, Slack's libraries log what people wrote, unmasked
# It reads SLACK_BOT_TOKEN too and warns that it does not need it.
bolt_log.addFilter(lambda record: "`token` will be unused" not in record.getMessage())
API = "https://slack.com/api/"
COMMAND = "/trainmedic"
DIAGNOSE = "trainmedic_diagnose"
TIMEOUT_S = 15
EVERYTHING = re.compile(".*")
HELP_WORDS = ("", "help", "帮助")
PING_S = 10
"""Seconds between two pings of the socket."""
Json = Mapping[str, Any]


class SlackBot:
    """One workspace's bot. ``async with SlackBot(context) as bot`` while the event loop runs."""

    def __init__(
        self,
        context: AppContext,
        *,
        streams: Streams | None = None,
        ping_s: float = PING_S,
        shutdown_s: float = SHUTDOWN_S,
    ) -> None:
        self.context = context
        self._settings = context.settings.of(SlackSettings)
        self.app: AsyncApp
        self.identity: Identity
        self.workspace: Workspace
        self.handler = Handler(context, "slack")
        self._streams = streams or Streams()
        self._ping_s = ping_s
        self._leaving_s = shutdown_s
        self._session: aiohttp.ClientSession | None = None
        self._http = httpx.AsyncClient()
        self._handler: AsyncSocketModeHandler | None = None
        self._connecting: asyncio.Task[None] | None = None

    async def __aenter__(self) -> SlackBot:
        await self.start()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Log in, then connect if Socket Mode is used. Raises `SlackLogin` or `SlackUnavailable`."""
        settings = self._settings
        token = settings.bot_token.get_secret_value()
        self._session = aiohttp.ClientSession(trust_env=True)
        try:
            calls = Calls(self._client(token))
            self.identity = await identify(calls)
            if self.identity.missing:
                missing = ", ".join(self.identity.missing)
                log.error("the Slack app lacks the permissions %s: add them to the app and reinstall it", missing)
            self.workspace = self._workspace(calls, token)
            self.app = self._app(token)
            if app_token := settings.app_token.get_secret_value():
                await self._connect(calls, app_token)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Stop accepting events, finish the questions in progress, then disconnect."""
        if self._connecting is not None:
            self._connecting.cancel()
            with suppress(asyncio.CancelledError):
                await self._connecting
            self._connecting = None
        if self._handler is not None:
            await self._handler.close_async()  # type: ignore[no-untyped-call]
            self._handler = None
        await self.handler.tasks.drain(self._leaving_s)
        await self._http.aclose()
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _client(self, token: str | None) -> AsyncWebClient:
        return AsyncWebClient(
            token=token, base_url=API, session=self._session, timeout=TIMEOUT_S, retry_handlers=[], logger=bolt_log
        )

    def _workspace(self, calls: Calls, token: str) -> Workspace:
        downloads = Downloads(client=self._http, hosts=HOSTS, api_url=API)
        return Workspace(
            context=self.context,
            calls=calls,
            poster=Poster(calls=calls, http=self._http),
            files=SlackFiles(calls=calls, downloads=downloads, token=token),
            streams=self._streams,
            identity=self.identity,
            key=self._settings.signing_secret.get_secret_value() or token,
        )

    async def _connect(self, calls: Calls, app_token: str) -> None:
        await check_app_token(calls, app_token)
        self._handler = AsyncSocketModeHandler(
            self.app, app_token, logger=bolt_log, web_client=self._client(None), ping_interval=self._ping_s
        )
        # Returns once connected, and retries forever until then: a task, so that `close` can cancel it.
        self._connecting = asyncio.create_task(self._handler.connect_async())  # type: ignore[no-untyped-call]

    def _app(self, token: str) -> AsyncApp:
        # One workspace only: with `authorize` given, Bolt asks Slack nothing and needs no installation store.
        result = AuthorizeResult(
            enterprise_id=self.identity.enterprise,
            team_id=self.identity.team,
            bot_token=token,
            bot_id=self.identity.bot,
            bot_user_id=self.identity.user,
        )

        async def authorize() -> AuthorizeResult:
            return result  # called for every event before it is acknowledged, so it must not call Slack

        app = AsyncApp(
            logger=bolt_log,
            client=self._client(None),
            authorize=authorize,
            signing_secret=self._settings.signing_secret.get_secret_value(),
            request_verification_enabled=False,  # done before, see `ui.channels.slack.http`
        )
        app.event("app_mention")(self._mention)
        app.event("message")(self._message)
        app.event("agent_session_stopped")(self._stopped)
        app.command(COMMAND)(self._command)
        app.shortcut(DIAGNOSE)(self._shortcut)

        async def clicked(ack: AsyncAck, body: dict[str, Any]) -> None:
            await ack()
            self.handler.tasks.start(react(self.workspace, self.handler, body))

        async def acknowledge(ack: AsyncAck) -> None:
            await ack()

        # Bolt runs the first listener that matches, so the catch-all ones must be registered last.
        app.action(re.compile("^trainmedic_"))(clicked)
        app.action(EVERYTHING)(acknowledge)
        app.shortcut(EVERYTHING)(acknowledge)
        app.view(EVERYTHING)(acknowledge)
        app.event(EVERYTHING)(acknowledge)
        app.error(self._error)
        return app

    async def _error(self, error: Exception) -> None:
        log.error("a listener failed\n%s", trace_of(error))

    async def _mention(self, body: dict[str, Any], event: dict[str, Any]) -> None:
        # Messages of bots are ignored, or two bots in one channel would answer each other forever.
        if not event.get("bot_id") and is_written(event):
            self._accept(body, event)

    async def _message(self, body: dict[str, Any], event: dict[str, Any]) -> None:
        if event.get("bot_id") or not event.get("user") or not is_written(event):
            return
        channel, thread_ts, workspace = str(event.get("channel", "")), event.get("thread_ts"), self.workspace
        if self._place(event).direct:
            self._accept(body, event)
        elif mentions(event, self.identity.user):
            return  # the same sentence comes as app_mention
        elif thread_ts and workspace.awaited.get((channel, thread_ts)) == event["user"]:
            self._accept(body, event)  # the answer to what we asked back
        elif not thread_ts and workspace.options(channel).answers == "all":
            self._accept(body, event, addressed=False)

    def _accept(self, body: Json, event: Json, *, addressed: bool = True) -> None:
        # Slack repeats events, and sends one message as two kinds of event.
        names = [("event", body["event_id"])] if body.get("event_id") else []
        if not self.handler.claim(*names, (event.get("channel"), event.get("ts"))):
            return
        message = self.workspace.incoming(dict(event))
        in_thread = bool(event.get("thread_ts"))
        self.handler.accept(
            SlackDestination(self.workspace, self._place(event), message, in_thread=in_thread, addressed=addressed)
        )

    def _place(self, event: Json) -> Place:
        channel = str(event.get("channel", ""))
        return Place(
            team=str(event.get("team") or self.identity.team),
            channel=channel,
            thread_ts=str(event.get("thread_ts") or event["ts"]),
            user=str(event.get("user", "")),
            direct=event.get("channel_type") == "im" or channel.startswith("D"),
        )

    async def _command(self, ack: AsyncAck, command: dict[str, Any]) -> None:
        text = str(command.get("text") or "").strip()
        channel, user = str(command.get("channel_id", "")), str(command.get("user_id", ""))
        place = Place(
            team=str(command.get("team_id") or self.identity.team),
            channel=channel,
            thread_ts="",
            user=user,
            direct=channel.startswith("D"),
        )
        message = IncomingMessage(ts="", user=user, text=text)
        url = str(command.get("response_url") or "")
        to = SlackDestination(self.workspace, place, message, alone=True, url=url)
        if text.lower() in HELP_WORDS:
            await ack(messages("slack_help", to.language))
            return
        # The text of an acknowledgement is shown to the asker alone, within the three seconds that Slack allows.
        await ack(messages("working", to.language))
        self.handler.accept(to)

    async def _shortcut(self, ack: AsyncAck, body: dict[str, Any]) -> None:
        await ack()
        message = body.get("message") or {}
        self.handler.accept(
            SlackDestination(
                self.workspace,
                place_of(body, self.identity.team),
                self.workspace.incoming(dict(message)),
                in_thread=bool(message.get("thread_ts")),
                url=str(body.get("response_url") or ""),
            )
        )

    async def _stopped(self, event: dict[str, Any]) -> None:
        self.handler.tasks.start(self._stop(str(event.get("channel", "")), str(event.get("thread_ts", ""))))

    async def _stop(self, channel: str, thread_ts: str) -> None:
        """Stop an answer: the reader pressed Slack's Stop button."""
        live, task = self.workspace.lives.get((channel, thread_ts), (None, None))
        # The flag first: cancellation arrives at the next await, and until then nothing may be sent.
        if live is not None and task is not None:
            live.stopped.set()
            task.cancel()
        try:
            await self.workspace.calls(
                "agents_sessions_setStatus", channel_id=channel, thread_ts=thread_ts, status="active"
            )
        except (SlackRefused, SlackLost) as error:
            log.warning("the session's status could not be set: %s", error)
