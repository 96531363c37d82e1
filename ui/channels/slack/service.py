"""The bot beside a running service, and the route of Slack's HTTP events."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from slack_bolt.adapter.starlette.async_handler import AsyncSlackRequestHandler
from starlette.requests import Request
from starlette.responses import Response
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_chain, wait_fixed

from trainmedic.kb.retry import sleep_unless
from trainmedic.ui.channels.http import body_of, refusal
from trainmedic.ui.channels.slack.bot import SlackBot
from trainmedic.ui.channels.slack.http import PATH, is_rate_note, why_refused
from trainmedic.ui.channels.slack.scopes import SlackLogin, SlackUnavailable
from trainmedic.ui.channels.slack.settings import SlackSettings
from trainmedic.ui.context import AppContext

log = logging.getLogger("trainmedic.slack")
RETRY_S = (5.0, 15.0, 60.0)
"""Pauses between attempts to reach Slack at start; the last one repeats."""


class SlackService:
    """`running` starts and stops the bot, `attach` adds the route of Slack's HTTP events."""

    def __init__(self, context: AppContext) -> None:
        self._context, self._settings = context, context.settings.of(SlackSettings)
        self._bot: SlackBot | None = None

    def attach(self, app: FastAPI) -> None:
        """Add the route of Slack's HTTP events, unless Socket Mode is used."""
        if self._settings.signing_secret.get_secret_value() and not self._settings.app_token.get_secret_value():
            app.add_route(PATH, self._handle, methods=["POST"])

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the bot inside. It connects in the background and retries, so an unreachable Slack delays nothing."""
        stop = asyncio.Event()
        task = asyncio.create_task(self._start(stop))
        try:
            yield
        finally:
            stop.set()
            await task

    async def _handle(self, request: Request) -> Response:
        """Pass verified requests to the bot, refuse everything else."""
        body = await body_of(request)
        if body is None:
            return refusal(413, "too_large", "Slack")
        secret = self._settings.signing_secret.get_secret_value()
        if refused := why_refused(request.headers, body, secret):
            return refusal(*refused, "Slack")
        if is_rate_note(body.decode(), request.headers.get("content-type", "")):
            log.error("Slack holds events back: more than 30,000 in an hour")
            return Response()
        if self._bot is None:
            return refusal(503, "starting", "Slack")  # Slack retries
        request._body = body  # read once; Bolt's handler asks for it again
        return await AsyncSlackRequestHandler(self._bot.app).handle(request)

    async def _start(self, stop: asyncio.Event) -> None:
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(SlackUnavailable),
            wait=wait_chain(*map(wait_fixed, RETRY_S)),
            stop=lambda state: stop.is_set(),
            before_sleep=_log_pause,
            sleep=sleep_unless(stop),
            reraise=True,
        )
        try:
            await retrying(self._serve, stop)
        except SlackLogin as error:
            log.error("no Slack: %s", error.message)  # trying again would not help
        except SlackUnavailable as error:
            log.warning("no Slack: %s; stopping", error.message)

    async def _serve(self, stop: asyncio.Event) -> None:
        """Serve until ``stop``. Raises `SlackLogin` or `SlackUnavailable`."""
        if stop.is_set():  # set during the pause between two attempts
            return
        async with SlackBot(self._context) as bot:
            self._bot = bot
            try:
                await stop.wait()
            finally:
                self._bot = None


def _log_pause(state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome is not None else None
    log.warning("no Slack yet: %s; trying again in %g s", error, state.upcoming_sleep)
