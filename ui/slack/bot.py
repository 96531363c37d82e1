"""The bot: events from Slack, acknowledged within three seconds and passed to the question handler.

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
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.context.ack.async_ack import AsyncAck
from slack_sdk.web.async_client import AsyncWebClient

from trainmedic.kb.trace import trace_of
from trainmedic.service.settings import MEBIBYTE, is_loopback
from trainmedic.ui.bots.seen import SeenEvents
from trainmedic.ui.bots.tasks import SHUTDOWN_S
from trainmedic.ui.context import AppContext
from trainmedic.ui.slack.calls import Calls, SlackLost, SlackRefused
from trainmedic.ui.slack.clicks import Clicks, place_of
from trainmedic.ui.slack.files import Downloads
from trainmedic.ui.slack.gather import Gatherer, Place
from trainmedic.ui.slack.incoming import is_written, mentions
from trainmedic.ui.slack.live import StreamLimits
from trainmedic.ui.slack.messages import messages
from trainmedic.ui.slack.post import Poster
from trainmedic.ui.slack.question_handler import QuestionHandler, Workspace
from trainmedic.ui.slack.scopes import Identity, check_app_token, identify
from trainmedic.ui.slack.status import status_lines

log = logging.getLogger("trainmedic.slack")
bolt_log = logging.getLogger("trainmedic.slack.bolt")
bolt_log.setLevel(logging.INFO)  # below that, Slack's libraries log what people wrote, unmasked
# It reads SLACK_BOT_TOKEN too and warns that it does not need it.
bolt_log.addFilter(lambda record: "`token` will be unused" not in record.getMessage())
COMMAND = "/trainmedic"
PROMPTS = ("nan", "memory", "rewards", "command")
"""Suggested questions: names below ``prompts`` in messages.toml."""
DIAGNOSE = "trainmedic_diagnose"
TIMEOUT_S = 15
EVERYTHING = re.compile(".*")
HELP_WORDS, STATUS_WORDS = ("", "help", "帮助"), ("status", "状态")
PING_S = 10
"""Seconds between two pings of the socket."""
ACK_S = 3.0
"""Slack's time limit for an acknowledgement."""
Json = Mapping[str, Any]


class Socket(AsyncSocketModeHandler):
    """A socket handler that tracks unacknowledged envelopes: Bolt only polls for them every 10 ms."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._handling = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._leaving = False

    async def handle(self, client: Any, req: Any) -> None:
        """Pass one envelope to Bolt, then acknowledge it. Ignored while leaving, so that Slack delivers it again."""
        if self._leaving:
            return
        self._handling += 1
        self._idle.clear()
        try:
            await super().handle(client, req)
        finally:
            self._handling -= 1
            if not self._handling:
                self._idle.set()

    async def leave(self) -> None:
        """Stop accepting envelopes, acknowledge the pending ones, then close."""
        self._leaving = True
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), ACK_S)
        await self.close_async()  # type: ignore[no-untyped-call]


class SlackBot:
    """One workspace's bot. ``async with SlackBot(context) as bot`` while the event loop runs."""

    def __init__(
        self,
        context: AppContext,
        *,
        streams: StreamLimits | None = None,
        ping_s: float = PING_S,
        shutdown_s: float = SHUTDOWN_S,
    ) -> None:
        self.context = context
        self.app: AsyncApp
        self.identity: Identity
        self.questions: QuestionHandler
        self.connections = 0
        self._seen = SeenEvents()
        self._streams = streams or StreamLimits()
        self._ping_s = ping_s
        self._leaving_s = shutdown_s
        self._session: aiohttp.ClientSession | None = None
        self._handler: Socket | None = None
        self._connecting: asyncio.Task[None] | None = None

    @property
    def by_socket(self) -> bool:
        return bool(self.context.settings.slack_app_token.get_secret_value())

    async def __aenter__(self) -> SlackBot:
        await self.start()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Log in, then connect if Socket Mode is used. Raises `SlackLogin` or `SlackUnavailable`."""
        settings = self.context.settings
        token = settings.slack_bot_token.get_secret_value()
        self._session = aiohttp.ClientSession(trust_env=True)
        try:
            calls = Calls(self._client(token))
            self.identity = await identify(calls)
            for scope in self.identity.missing:
                log.warning(
                    "the Slack app lacks the permission %s: %s; add it and reinstall the app",
                    scope,
                    messages(f"features.{scope}", "en"),
                )
            self.questions = QuestionHandler(self._workspace(calls, token))
            self.app = self._app(token)
            if self.by_socket:
                await self._connect(calls, settings.slack_app_token.get_secret_value())
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
            # Acknowledge first, then answer: an unacknowledged event would go to the next process as well.
            await self._handler.leave()
            self._handler = None
        if hasattr(self, "questions"):
            await self.questions.tasks.drain(self._leaving_s)
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def is_connected(self) -> bool:
        """Whether the socket is connected; True over HTTP."""
        if not self.by_socket:
            return True
        return self._handler is not None and bool(await self._handler.client.is_connected())

    def _client(self, token: str | None) -> AsyncWebClient:
        url = self.context.settings.slack_api_url
        client = AsyncWebClient(
            token=token, base_url=url, session=self._session, timeout=TIMEOUT_S, retry_handlers=[], logger=bolt_log
        )
        if is_loopback(re.sub(r"^https?://|[:/].*$", "", url)):
            client.proxy = None  # the client takes a proxy from the environment and does not know its exceptions
        return client

    def _workspace(self, calls: Calls, token: str) -> Workspace:
        assert self._session is not None
        settings, identity = self.context.settings, self.identity
        downloads = Downloads(
            calls=calls,
            session=self._session,
            token=token,
            api_url=settings.slack_api_url,
            max_bytes=settings.slack_file_mb * MEBIBYTE,
            max_files=settings.max_attachments,
            may=identity.may,
        )
        return Workspace(
            context=self.context,
            calls=calls,
            poster=Poster(calls=calls, session=self._session),
            gatherer=Gatherer(calls=calls, downloads=downloads, bot_user=identity.user, bot_id=identity.bot),
            streams=self._streams,
            identity=identity,
            key=settings.slack_signing_secret.get_secret_value() or token,
        )

    async def _connect(self, calls: Calls, app_token: str) -> None:
        await check_app_token(calls, app_token)
        self._handler = Socket(
            self.app, app_token, logger=bolt_log, web_client=self._client(None), ping_interval=self._ping_s
        )
        # Not a Bolt event: `hello` never reaches the listeners of the app.
        self._handler.client.message_listeners.append(self._hello)
        # Returns once connected, and retries forever until then: a task, so that `close` can cancel it.
        self._connecting = asyncio.create_task(self._handler.connect_async())  # type: ignore[no-untyped-call]

    async def _hello(self, client: object, message: Json, raw: str | None = None) -> None:
        """Slack greets each connection with their number: it sends events to any of them, even half-open ones."""
        if message.get("type") != "hello":
            return
        self.connections = int(message.get("num_connections") or 1)
        if self.connections > 1:
            log.warning("the app has %d connections, and Slack sends each event to only one of them", self.connections)

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
            signing_secret=self.context.settings.slack_signing_secret.get_secret_value(),
            request_verification_enabled=False,  # done before, see `ui.slack.http`
        )
        clicks = Clicks(self.questions)
        app.event("app_mention")(self._mention)
        app.event("message")(self._message)
        app.event("app_home_opened")(self._opened)
        app.event("agent_session_stopped")(self._stopped)
        app.command(COMMAND)(self._command)
        app.shortcut(DIAGNOSE)(self._shortcut)

        async def clicked(ack: AsyncAck, body: dict[str, Any]) -> None:
            await ack()
            self.questions.tasks.start(clicks.handle(body))

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
        if event.get("bot_id") or not is_written(event) or not self._claim(body, event):
            return
        thread_ts = event.get("thread_ts")
        self._accept(self._place(event, thread_ts or event["ts"]), event, in_thread=bool(thread_ts))

    async def _message(self, body: dict[str, Any], event: dict[str, Any]) -> None:
        if event.get("bot_id") or not event.get("user") or not is_written(event):
            return
        channel, thread_ts = str(event.get("channel", "")), event.get("thread_ts")
        place = self._place(event, thread_ts or event["ts"])
        if place.direct:
            if self._claim(body, event):
                self._accept(place, event, in_thread=bool(thread_ts))
        elif mentions(event, self.identity.user):
            return  # the same sentence comes as app_mention
        elif thread_ts and self.questions.awaits(channel, thread_ts, place.user):
            if self._claim(body, event):
                self._accept(place, event, in_thread=True)
        elif not thread_ts and self.questions.options(channel).answers == "all" and self._claim(body, event):
            self._accept(place, event, in_thread=False, addressed=False)

    def _claim(self, body: Json, event: Json) -> bool:
        """Whether this message is new: Slack repeats events, and sends one message as two kinds of event."""
        names = [("event", body["event_id"])] if body.get("event_id") else []
        return self._seen.claim(*names, (event.get("channel"), event.get("ts")))

    def _place(self, event: Json, thread_ts: str) -> Place:
        channel = str(event.get("channel", ""))
        return Place(
            team=str(event.get("team") or self.identity.team),
            channel=channel,
            thread_ts=thread_ts,
            user=str(event.get("user", "")),
            direct=event.get("channel_type") == "im" or channel.startswith("D"),
        )

    def _accept(self, place: Place, message: Json, *, in_thread: bool, addressed: bool = True, url: str = "") -> None:
        question = self.questions.workspace.gatherer.incoming(dict(message))
        # Refused at once rather than queued: an answer after many minutes helps nobody.
        if self.questions.tasks.full:
            language = self.questions.language(place.channel, question.text)
            log.warning("too many questions at once; one was refused")
            if addressed:
                self.questions.tasks.start(self.questions.say(place, messages("busy", language), url=url))
            return
        self.questions.tasks.start(
            self.questions.in_thread(place, question, in_thread=in_thread, addressed=addressed, url=url)
        )

    async def _command(self, ack: AsyncAck, command: dict[str, Any]) -> None:
        text = str(command.get("text") or "").strip()
        channel, user = str(command.get("channel_id", "")), str(command.get("user_id", ""))
        language = self.questions.language(channel, text)
        if text.lower() in HELP_WORDS:
            await ack(messages("help", language))
            return
        # The text of an acknowledgement is shown to the asker alone, within the three seconds that Slack allows.
        await ack(messages("working", language))
        place = Place(
            team=str(command.get("team_id") or self.identity.team),
            channel=channel,
            thread_ts="",
            user=user,
            direct=channel.startswith("D"),
        )
        url = str(command.get("response_url") or "")
        if text.lower() in STATUS_WORDS:
            self.questions.tasks.start(self._status(place, language, url))
        else:
            self.questions.tasks.start(self.questions.alone(text, place, url))

    async def _status(self, place: Place, language: str, url: str) -> None:
        how = f"Socket Mode ({self.connections})" if self.by_socket else "HTTP"
        lines = await status_lines(self.context, self.identity, language, how, self.questions.tasks.running)
        await self.questions.say(place, "\n".join(lines), url=url, alone=True)

    async def _shortcut(self, ack: AsyncAck, body: dict[str, Any]) -> None:
        await ack()
        message = body.get("message") or {}
        thread_ts = message.get("thread_ts")
        url = str(body.get("response_url") or "")
        self._accept(place_of(body, self.identity.team), message, in_thread=bool(thread_ts), url=url)

    async def _opened(self, event: dict[str, Any]) -> None:
        if event.get("tab") == "messages" and self.identity.may("assistant:write"):
            self.questions.tasks.start(self._prompts(str(event.get("channel", "")), str(event.get("user", ""))))

    async def _prompts(self, channel: str, user: str) -> None:
        """Suggest questions. The call has no effect under agent_view if it names a thread."""
        language = await self._locale(user)
        prompts = [
            {
                "title": messages(f"prompts.{name}.title", language),
                "message": messages(f"prompts.{name}.text", language),
            }
            for name in PROMPTS
        ]
        title = messages("prompts_title", language)
        try:
            await self.questions.workspace.calls(
                "assistant_threads_setSuggestedPrompts", channel_id=channel, prompts=prompts, title=title
            )
        except (SlackRefused, SlackLost) as error:
            log.warning("the suggested prompts could not be set: %s", error)

    async def _locale(self, user: str) -> str:
        """The language of the user's Slack; English if that cannot be read."""
        if not self.identity.may("users:read"):
            return "en"
        try:
            response = await self.questions.workspace.calls.read("users_info", user=user, include_locale=True)
        except (SlackRefused, SlackLost) as error:
            log.warning("the user's language could not be read: %s", error)
            return "en"
        return "zh" if str((response.get("user") or {}).get("locale", "")).startswith("zh") else "en"

    async def _stopped(self, event: dict[str, Any]) -> None:
        self.questions.tasks.start(self.questions.stop(str(event.get("channel", "")), str(event.get("thread_ts", ""))))
