"""Answer in Slack, without the web server.

Needs SLACK_BOT_TOKEN, and SLACK_APP_TOKEN (Socket Mode, no address needed) or SLACK_SIGNING_SECRET (Slack posts to
/slack/events on --host and --port). `trainmedic serve` does the same beside its pages. The setup is in
docs/connect/channels.md.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from trainmedic.kb.errors import InvalidSettings

if TYPE_CHECKING:
    from trainmedic.service.settings import Settings


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--manifest", action="store_true", help="print the manifest of the Slack app, start nothing")
    parser.add_argument("--host", help="address to listen on for HTTP events (127.0.0.1)")
    parser.add_argument("--port", type=int, help="port to listen on for HTTP events (8000)")


def run(options: argparse.Namespace) -> int:
    if options.manifest:
        from importlib.resources import files

        sys.stdout.write((files("trainmedic.ui.channels.slack") / "manifest.yaml").read_text(encoding="utf-8"))
        return 0
    from trainmedic.ui.channels.slack import configured
    from trainmedic.ui.channels.slack.settings import SlackSettings
    from trainmedic.ui.cli._service import settings_of

    settings = settings_of(options)
    if not configured(settings):
        raise InvalidSettings(
            "SLACK_BOT_TOKEN is not set",
            hint="trainmedic slack --manifest prints the app; docs/connect/channels.md has the steps",
        )
    if settings.of(SlackSettings).app_token.get_secret_value():
        asyncio.run(_by_socket(settings))
    else:
        _by_http(settings)
    return 0


async def _by_socket(settings: Settings) -> None:
    from trainmedic.ui.app import build_service
    from trainmedic.ui.channels.slack.bot import SlackBot

    service = build_service(settings)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Not KeyboardInterrupt: the open questions are answered before the process ends.
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        for start in service.background:
            await stack.enter_async_context(start())
        bot = await stack.enter_async_context(SlackBot(service.context))
        print(f"trainmedic answers in Slack (team {bot.identity.team}, Socket Mode)", file=sys.stderr, flush=True)
        await stop.wait()
        print("finishing the open questions", file=sys.stderr, flush=True)


def _by_http(settings: Settings) -> None:
    import uvicorn
    from fastapi import FastAPI

    from trainmedic.ui.app import build_service
    from trainmedic.ui.channels.slack.service import SlackService

    service = build_service(settings)
    slack = SlackService(service.context)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for start in service.background:
                await stack.enter_async_context(start())
            await stack.enter_async_context(slack.running())
            yield

    app = FastAPI(openapi_url=None, lifespan=lifespan)
    slack.attach(app)
    print(f"trainmedic listens for Slack on http://{settings.host}:{settings.port}/slack/events", file=sys.stderr)
    uvicorn.run(app, host=settings.host, port=settings.port, log_level="warning", access_log=False)
