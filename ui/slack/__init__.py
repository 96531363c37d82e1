"""The Slack bot: mentions, threads, direct messages, a command and a message shortcut.

``running(context)`` is part of the service's lifespan if Slack's tokens are set; ``attach(app, context)`` adds the
address that Slack posts to unless an app token selects Socket Mode. slack_bolt is imported only when a token is set.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING

from trainmedic.kb.errors import InvalidSettings
from trainmedic.service.settings import Settings

if TYPE_CHECKING:
    from fastapi import FastAPI

    from trainmedic.ui.context import AppContext
    from trainmedic.ui.slack.bot import SlackBot

log = logging.getLogger("trainmedic.slack")
RETRY_S = (5.0, 15.0, 60.0)
"""Pauses between attempts to reach Slack at start; the last one repeats."""
_serving: dict[int, SlackBot] = {}
"""The bot of each running service, for the HTTP events endpoint."""


def configured(settings: Settings) -> bool:
    """Whether Slack is to be served. Raises `InvalidSettings` if the tokens are incomplete."""
    bot = bool(settings.slack_bot_token.get_secret_value())
    app = bool(settings.slack_app_token.get_secret_value())
    secret = bool(settings.slack_signing_secret.get_secret_value())
    if not bot and (app or secret):
        raise InvalidSettings("SLACK_BOT_TOKEN is not set", hint="docs/slack.md says where to find it")
    if bot and not (app or secret):
        raise InvalidSettings(
            "SLACK_BOT_TOKEN alone is not enough",
            hint="set SLACK_APP_TOKEN (Socket Mode) or SLACK_SIGNING_SECRET (HTTP)",
        )
    return bot


def attach(app: FastAPI, context: AppContext) -> None:
    """Add the address of Slack's HTTP events unless Socket Mode is used. The bot itself lives in `running`."""
    if not configured(context.settings) or context.settings.slack_app_token.get_secret_value():
        return
    from trainmedic.ui.slack.http import PATH
    from trainmedic.ui.slack.route import endpoint

    app.add_route(PATH, endpoint(context.settings, lambda: _serving.get(id(context))), methods=["POST"])


@asynccontextmanager
async def running(context: AppContext) -> AsyncIterator[None]:
    """Keep the bot connected while the context is open. Connecting is retried in the background."""
    if not configured(context.settings):
        yield
        return
    stop = asyncio.Event()
    task = asyncio.create_task(_kept(context, stop))
    try:
        yield
    finally:
        stop.set()
        await task


async def _kept(context: AppContext, stop: asyncio.Event) -> None:
    from trainmedic.ui.slack.bot import SlackBot
    from trainmedic.ui.slack.scopes import SlackLogin, SlackUnavailable

    for attempt in range(10**9):
        try:
            async with AsyncExitStack() as stack:
                bot = await stack.enter_async_context(SlackBot(context))
                _serving[id(context)] = bot
                stack.callback(_serving.pop, id(context), None)
                await stop.wait()
            return
        except SlackLogin as error:
            log.error("no Slack: %s", error.message)  # trying again would not help
            return
        except SlackUnavailable as error:
            pause_s = RETRY_S[min(attempt, len(RETRY_S) - 1)]
            log.warning("no Slack yet: %s; trying again in %g s", error.message, pause_s)
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), pause_s)
            if stop.is_set():
                return
