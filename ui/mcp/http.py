"""``/mcp`` on the service: streamable HTTP, behind the same keys and bounds as the REST API.

Stateless: every POST is independent, so clients do not notice several workers or a restart. The protocol's library is
imported at the first call. Host and Origin are checked against DNS rebinding (a web page that makes a browser call a
service on its own machine) as the protocol's security advice asks for:
https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#security-warning
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from fastapi import FastAPI
from starlette.routing import Route

from trainmedic.kb.errors import TrainmedicError
from trainmedic.service.api.errors import STATUS, error_response
from trainmedic.ui.context import AppContext, during

if TYPE_CHECKING:
    from mcp.server import MCPServer
    from starlette.types import ASGIApp, Receive, Scope, Send

PATH = "/mcp"
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")
MAX_BODY = 16 * 1024 * 1024
"""Bytes of a request: `ui.mcp.server.MAX_CHARACTERS` in any script, escaped or not, and the envelope."""
LoadServer: TypeAlias = "Callable[[AppContext], MCPServer[Any]]"
"""`ui.mcp.server.make_server`, imported at the first call. Raises `ImportError` without the library."""
log = logging.getLogger("trainmedic.mcp")


class NotServing(TrainmedicError):
    """The endpoint is not running: the application has not started, has stopped, or lacks the library."""

    code = "mcp_unavailable"
    kind = "unavailable"


class Endpoint:
    """The ASGI application at ``/mcp``. Serves while `running` is entered."""

    def __init__(self, context: AppContext, load_server: LoadServer) -> None:
        self._context = context
        self._load_server = load_server
        self._hosts = allowed_hosts(context)
        self._open = False
        self._starting = asyncio.Lock()
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or answer 503 with an API error."""
        trace_id = str(scope.get("state", {}).get("trace_id", ""))
        if origin := foreign_origin(scope, self._hosts):
            message = f"calls from pages of {origin} are refused"
            hint = "set TRAINMEDIC_PUBLIC_URL to the address under which people open the service"
            await error_response(403, "wrong_origin", message, trace_id=trace_id, hint=hint)(scope, receive, send)
            return
        try:
            app = await self._started()
        except NotServing as error:
            refusal = error_response(STATUS[error.kind], error.code, error.message, trace_id=trace_id, hint=error.hint)
            await refusal(scope, receive, send)
            return
        await app(scope, receive, send)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve calls inside; cancel the open ones at the end."""
        self._open = True
        self._stop.clear()
        try:
            yield
        finally:
            self._open = False
            self._stop.set()
            if self._task is not None:
                await asyncio.gather(self._task, return_exceptions=True)
            self._task = self._app = None

    async def _started(self) -> ASGIApp:
        async with self._starting:
            if not self._open:
                raise NotServing("the service is starting or stopping", hint="try again")
            if self._app is None:
                # Errors of the start reach the first caller through this future.
                ready: asyncio.Future[ASGIApp] = asyncio.get_running_loop().create_future()
                # In a separate task, because the library's task group must end in the task that started it.
                self._task = asyncio.create_task(self._serve(ready), name="mcp")
                self._app = await ready
            return self._app

    async def _serve(self, ready: asyncio.Future[ASGIApp]) -> None:
        try:
            app, manager = await asyncio.to_thread(make_mcp_app, self._context, self._load_server)
        except ImportError:
            ready.set_exception(NotServing("the package mcp is not installed", hint="pip install 'trainmedic[mcp]'"))
            return
        except Exception as error:
            log.error("the MCP server cannot be started: %s", type(error).__name__)
            ready.set_exception(NotServing("the MCP server cannot be started"))
            return
        async with manager.run():
            ready.set_result(app)
            await self._stop.wait()


def make_mcp_app(context: AppContext, load_server: LoadServer) -> tuple[ASGIApp, Any]:
    """The protocol's application, and the session manager that must run around it."""
    from mcp.server.transport_security import TransportSecuritySettings

    server = load_server(context)
    names = allowed_hosts(context)
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=bool(names),
        # With and without a port, since a proxy may strip it.
        allowed_hosts=[host for name in names for host in (name, f"{name}:*")],
        allowed_origins=[
            origin
            for name in names
            for scheme in ("http", "https")
            for origin in (f"{scheme}://{name}", f"{scheme}://{name}:*")
        ],
    )
    app = server.streamable_http_app(
        streamable_http_path=PATH, stateless_http=True, max_request_body_size=MAX_BODY, transport_security=security
    )
    return app, server.session_manager


def foreign_origin(scope: Scope, hosts: Sequence[str]) -> str:
    """The origin of a call that is none of ``hosts``; empty if it is, if there is none, or if any host may call."""
    origin = dict(scope["headers"]).get(b"origin", b"").decode("latin-1")
    try:
        name = urlsplit(origin).hostname or ""
    except ValueError:
        name = ""
    names = {host.strip("[]") for host in hosts}
    return origin if origin and hosts and name not in names else ""


def allowed_hosts(context: AppContext) -> tuple[str, ...]:
    """Host names allowed in calls; empty, for any, if calls need a key, because no web page has one."""
    settings = context.settings
    if settings.guarded:
        return ()
    public = urlsplit(settings.public_url).hostname
    return (*LOOPBACK_HOSTS, public) if public else LOOPBACK_HOSTS


def attach(app: FastAPI, context: AppContext, load_server: LoadServer) -> None:
    """Serve ``/mcp`` on ``app``."""
    endpoint = Endpoint(context, load_server)
    app.router.routes.insert(0, Route(PATH, endpoint=endpoint, include_in_schema=False))
    during(app, endpoint.running)
