"""Serve the Model Context Protocol on standard input and output, for coding agents and chat clients.

Clients start this command themselves. docs/mcp.md has what to enter in them; the service has the same at /mcp.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from contextlib import AsyncExitStack
from importlib.util import find_spec
from typing import TYPE_CHECKING

from kb.errors import TrainmedicError

if TYPE_CHECKING:
    from service.settings import Settings


class McpMissing(TrainmedicError):
    """The protocol's library is not installed."""

    code = "mcp_unavailable"
    kind = "unavailable"


def arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's options: none, everything is a setting."""


def run(options: argparse.Namespace) -> int:
    """Serve until the client closes standard input."""
    from ui.cli._service import settings_of

    settings = settings_of(options)
    if find_spec("mcp") is None:
        raise McpMissing("the package mcp is not installed", hint="pip install 'trainmedic[mcp]'")
    # Standard output is the protocol's: whatever else is said goes to standard error.
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(name)s: %(message)s")
    asyncio.run(_serve(settings))
    return 0


async def _serve(settings: Settings) -> None:
    from service.api.routes import Worker
    from service.webhook import Telling, webhook_of
    from ui.app import build_advisor, build_asker
    from ui.mcp.server import make_server
    from ui.wired import Wired

    advisor = build_advisor(settings)
    worker = Worker(settings.concurrency, settings.request_timeout_s)
    async with AsyncExitStack() as stack:
        asker, model = build_asker(advisor, settings)
        if model is not None:
            stack.push_async_callback(model.aclose)
        webhook = webhook_of(settings)
        if webhook is not None:
            await stack.enter_async_context(webhook.running())
            asker = Telling(asker, webhook)
        wired = Wired(settings=settings, advisor=advisor, asker=asker, run=worker.run)
        await make_server(wired).run_stdio_async()
