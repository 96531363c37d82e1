"""Serve the chat, the knowledge browser, the REST API and MCP on one port, and Slack if its tokens are set."""

from __future__ import annotations

import argparse
import logging
import math
import os
import signal
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from trainmedic.kb.errors import TrainmedicError
from trainmedic.ui.cli import CLEAN, FAILED
from trainmedic.ui.garbage import all_stays

if TYPE_CHECKING:
    from trainmedic.service.settings import Settings

LEEWAY_S = 3
"""Seconds for the end of the application, after its last answer."""
log = logging.getLogger("trainmedic")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", help="address to listen on (127.0.0.1); beyond loopback a key is required")
    parser.add_argument("--port", type=int, help="port to listen on (8000)")


def run(options: argparse.Namespace) -> int:
    with all_stays():
        import uvicorn
        from uvicorn.config import LOGGING_CONFIG

        from trainmedic.service.access.proxies import trusted_hosts
        from trainmedic.ui.app import build_app
        from trainmedic.ui.cli._service import settings_of
        from trainmedic.ui.connections import Connections, protocol_of, room
        from trainmedic.ui.shutdown import EndlessStreams, Server, end_after

        settings = settings_of(options)
        connections = Connections(room(), trusted=trusted_hosts(settings.trusted_proxies))
        json = not sys.stderr.isatty()
        if json:
            from trainmedic.ui.logs import log_json

            log_json()
        _require_free(settings.host, settings.port)  # uvicorn would find out only after the knowledge is loaded
        app = build_app(settings)
    # uvicorn raises the signal again when it has shut down: an orderly end is a success.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    announce(settings, json=json)
    streams = EndlessStreams(app)
    # No request may take longer, so waiting that long finishes all of them.
    graceful_s = math.ceil(settings.request_timeout_s) + 1

    def on_stop() -> None:
        end_after(graceful_s + LEEWAY_S)
        streams.close()

    config = uvicorn.Config(
        streams,
        http=protocol_of(connections),
        ws="none",  # nothing here is a WebSocket
        host=settings.host,
        port=settings.port,
        log_level="warning",
        access_log=False,
        log_config=None if json else LOGGING_CONFIG,
        proxy_headers=False,  # `trusted_proxies` decides, within the application
        timeout_graceful_shutdown=graceful_s,
    )
    server = Server(config, on_stop=on_stop)
    with suppress(KeyboardInterrupt):  # raised once more when it has shut down
        server.run()
    return CLEAN if server.started else FAILED


def announce(settings: Settings, *, json: bool) -> None:
    """Say where the service listens, as a line of its log if that is JSON: where no person reads it."""
    message = f"trainmedic listens on http://{settings.host}:{settings.port}"
    if json:
        log.info(message)
    else:
        print(message, file=sys.stderr)


def _require_free(host: str, port: int) -> None:
    """Raise `TrainmedicError` if the address is in use or does not belong to this machine."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            if os.name == "posix":  # as uvicorn does, so that an address in TIME_WAIT counts as free
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        why = error.strerror or str(error)
        raise TrainmedicError(f"cannot listen on {host}:{port} ({why})", hint="choose another with --port") from error
