"""``/mcp`` on the service: streamable HTTP, behind the same keys and bounds as the REST API.

Stateless: every POST is independent, so clients do not notice several workers or a restart. The protocol's library is
imported at the first call. It checks Host and Origin against DNS rebinding (a web page that makes a browser call a
service on its own machine) as the protocol's security advice asks for:
https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#security-warning
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from fastapi import FastAPI
from starlette.routing import Route

from trainmedic.service.api.errors import error_response
from trainmedic.ui.context import AppContext

if TYPE_CHECKING:
    from mcp.server import MCPServer
    from mcp.server.transport_security import TransportSecuritySettings
    from starlette.types import Receive, Scope, Send

PATH = "/mcp"
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")
MAX_BODY = 16 * 1024 * 1024
"""Bytes of a request: `ui.mcp.server.MAX_CHARACTERS` in any script, escaped or not, and the envelope."""
LoadServer: TypeAlias = "Callable[[AppContext], MCPServer[Any]]"
"""`ui.mcp.server.make_server`, imported at the first call. Raises `ImportError` without the library."""


class Endpoint:
    """The ASGI application at ``/mcp``."""

    def __init__(self, context: AppContext, load_server: LoadServer) -> None:
        self._context = context
        self._load_server = load_server
        self._server: MCPServer[Any] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or answer 503 with an API error."""
        try:
            if self._server is None:
                self._server = await asyncio.to_thread(self._load_server, self._context)
        except ImportError:
            message, hint = "the package mcp is not installed", "pip install 'trainmedic[mcp]'"
            trace_id = str(scope.get("state", {}).get("trace_id", ""))
            refusal = error_response(503, "mcp_unavailable", message, trace_id=trace_id, hint=hint)
            await refusal(scope, receive, send)
            return
        server = self._server
        app = server.streamable_http_app(
            streamable_http_path=PATH,
            stateless_http=True,
            max_request_body_size=MAX_BODY,
            transport_security=security(self._context),
        )
        # A manager for each request: its task group must end in the task that started it.
        async with server.session_manager.run():
            await app(scope, receive, send)


def security(context: AppContext) -> TransportSecuritySettings:
    """Which hosts and origins may call: any if calls need a key, because no web page has one."""
    from mcp.server.transport_security import TransportSecuritySettings

    public = urlsplit(context.settings.public_url).hostname
    # With and without a port, since a proxy may strip it.
    hosts = [f"{name}{port}" for name in (*LOOPBACK_HOSTS, public) if name for port in ("", ":*")]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=not context.settings.guarded,
        allowed_hosts=hosts,
        allowed_origins=[f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")],
    )


def attach(app: FastAPI, context: AppContext, load_server: LoadServer) -> None:
    """Serve ``/mcp`` on ``app``. Call it before adding a route that matches all paths."""
    app.router.routes.insert(0, Route(PATH, endpoint=Endpoint(context, load_server), include_in_schema=False))
