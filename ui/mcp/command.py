"""Serve the Model Context Protocol on standard input and output, for coding agents and chat clients.

Clients start this command themselves; docs/connect/mcp.md shows their configuration. The service
offers the same at /mcp.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from trainmedic.kb.errors import InvalidRequest, TrainmedicError

if TYPE_CHECKING:
    from trainmedic.service.settings import Settings


class McpMissing(TrainmedicError):
    code = "mcp_unavailable"
    kind = "unavailable"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--root",
        action="append",
        default=[],
        type=Path,
        metavar="FOLDER",
        help="let the client name files below this folder by their path, instead of sending their text; repeatable",
    )


def run(options: argparse.Namespace) -> int:
    from trainmedic.ui.cli._service import settings_of

    settings = settings_of(options)
    if find_spec("mcp") is None:
        raise McpMissing("the package mcp is not installed", hint="pip install 'trainmedic[mcp]'")
    # Standard output carries the protocol, so logs go to standard error.
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(name)s: %(message)s")
    for root in options.root:
        if not root.is_dir():
            raise InvalidRequest(f"{root} is not a folder")
    asyncio.run(_serve(settings, options.root))
    return 0


async def _serve(settings: Settings, roots: Sequence[Path]) -> None:
    from trainmedic.ui.app import build_service
    from trainmedic.ui.mcp.server import make_server

    service = build_service(settings)
    async with AsyncExitStack() as stack:
        for start in service.background:
            await stack.enter_async_context(start())
        await make_server(service.context, roots).run_stdio_async()
