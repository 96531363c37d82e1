"""The bot beside a running service: `running` starts and stops it, `attach` adds the route of Slack's HTTP events."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from fastapi import FastAPI

from trainmedic.ui.context import AppContext
from trainmedic.ui.slack.bot import SlackBot
from trainmedic.ui.slack.http import PATH
from trainmedic.ui.slack.route import endpoint
from trainmedic.ui.slack.scopes import SlackLogin, SlackUnavailable

log = logging.getLogger("trainmedic.slack")
RETRY_S = (5.0, 15.0, 60.0)
"""Pauses between attempts to reach Slack at start; the last one repeats."""
_bots: dict[int, SlackBot] = {}
"""The bot of each running service, by the id of its context, for the route."""


def attach(app: FastAPI, context: AppContext) -> None:
    """Add the route of Slack's HTTP events, unless Socket Mode is used. Its requests go to the bot of `running`."""
    settings = context.settings
    if settings.slack_signing_secret.get_secret_value() and not settings.slack_app_token.get_secret_value():
        app.add_route(PATH, endpoint(settings, lambda: _bots.get(id(context))), methods=["POST"])


@asynccontextmanager
async def running(context: AppContext) -> AsyncIterator[None]:
    """Run the bot inside. It connects in the background and retries, so an unreachable Slack delays nothing."""
    stop = asyncio.Event()
    task = asyncio.create_task(_serve(context, stop))
    try:
        yield
    finally:
        stop.set()
        await task


async def _serve(context: AppContext, stop: asyncio.Event) -> None:
    """Start the bot, retrying while Slack cannot be reached; then wait for ``stop``."""
    for attempt in range(10**9):
        try:
            async with AsyncExitStack() as stack:
                bot = await stack.enter_async_context(SlackBot(context))
                _bots[id(context)] = bot
                stack.callback(_bots.pop, id(context), None)
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
