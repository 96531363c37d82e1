"""The ASGI layers around every route, outermost first: metrics, trace id, host, key, size of the body.

Plain ASGI, because Starlette's `BaseHTTPMiddleware` hides a client's disconnect from the routes. Its
`TrustedHostMiddleware` knows lists of names only; the host check here admits any address and any undotted name.
"""

from __future__ import annotations

import hmac
import time
import uuid
from contextlib import suppress
from ipaddress import ip_address
from urllib.parse import urlsplit

from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trainmedic.service.api.errors import error_response, internal_error, log_unexpected
from trainmedic.service.api.metrics import Metrics
from trainmedic.service.settings import MEBIBYTE, Settings

OPEN_PATHS = frozenset({"/livez", "/readyz", "/version"})
"""Health needs no key: probes have none, and it holds no secret."""
GUARDED_PREFIXES = ("/v1/", "/mcp", "/metrics", "/openapi.json")
ADMIN_PREFIX = "/v1/admin"
SIGNED_PREFIXES = ("/slack/", "/feishu/", "/dingtalk/")
"""Signed requests; a service that a chat platform calls has a public name."""
TRACE_HEADER = b"x-trace-id"


def add_middleware(app: FastAPI, settings: Settings, metrics: Metrics) -> None:
    """Wrap the application in all layers."""
    # The last one added is the outermost.
    app.add_middleware(BodyLimit, max_bytes=settings.max_request_mb * MEBIBYTE)
    app.add_middleware(RequireKey, keys=settings.keys, administrators=settings.administrators)
    if not settings.keys:
        app.add_middleware(OwnHost, public_url=settings.public_url)
    app.add_middleware(Trace)
    app.add_middleware(Measure, metrics=metrics)


class Measure:
    """Counts and times the requests by route."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 500

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            # The pattern and not the path: every id would become a time series of its own.
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.requests.labels(route=route, code=str(status)).inc()
            self._metrics.duration.labels(route=route).observe(time.perf_counter() - started)


class Trace:
    """Gives each request an id, sends it with the response, and answers unexpected errors with it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        trace_id = uuid.uuid4().hex
        scope.setdefault("state", {})["trace_id"] = trace_id
        started = False

        async def traced(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message.get("headers", []), (TRACE_HEADER, trace_id.encode())]
            await send(message)

        try:
            await self._app(scope, receive, traced)
        except Exception as error:
            # Not left to the server, which would log the message unmasked and answer without the trace id.
            log_unexpected(error, trace_id)
            if not started:
                await internal_error(trace_id)(scope, receive, traced)


class OwnHost:
    """Refuses requests for a name that is not the service's own. Only for services without keys.

    A web page can let its own domain point at this machine and then read this service with its reader's browser (DNS
    rebinding). It cannot do so with an address, nor with a name that nobody can register.
    """

    def __init__(self, app: ASGIApp, *, public_url: str = "") -> None:
        self._app = app
        self._public = (urlsplit(public_url).hostname or "").lower()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._admits(scope):
            response = error_response(
                421,
                "wrong_host",
                "this service is not known under that name",
                trace_id=scope["state"]["trace_id"],
                hint="set TRAINMEDIC_PUBLIC_URL to the address under which people open it",
            )
            await response(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _admits(self, scope: Scope) -> bool:
        path = scope["path"]
        if path in OPEN_PATHS or path.startswith(SIGNED_PREFIXES):
            return True
        try:
            # latin-1 decodes any byte; a header need not be ASCII.
            host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
            name = (urlsplit(f"//{host}").hostname or "").lower()
            if "." not in name or name == self._public or name.endswith(".localhost"):
                return True
            return bool(ip_address(name))
        except ValueError:
            return False


class RequireKey:
    """Refuses API requests without one of the keys; without any keys, admits all but those of administrators."""

    def __init__(self, app: ASGIApp, *, keys: frozenset[str], administrators: frozenset[str]) -> None:
        self._app = app
        self._administrators = tuple(key.encode() for key in sorted(administrators))
        self._keys = (*(key.encode() for key in sorted(keys)), *self._administrators) if keys else ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._admits(scope):
            response = error_response(
                401,
                "unauthorized",
                "a valid key is needed",
                trace_id=scope["state"]["trace_id"],
                hint="send Authorization: Bearer <key>",
                headers={"WWW-Authenticate": "Bearer"},
            )
            await response(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _admits(self, scope: Scope) -> bool:
        path = scope["path"]
        keys = self._administrators if path.startswith(ADMIN_PREFIX) else self._keys
        if not keys or path in OPEN_PATHS or not path.startswith(GUARDED_PREFIXES):
            return True
        scheme, _, key = dict(scope["headers"]).get(b"authorization", b"").partition(b" ")
        # Every key is compared, so that the time taken does not depend on which one is close.
        matches = [hmac.compare_digest(key.strip(), known) for known in keys]
        return scheme.lower() == b"bearer" and any(matches)


class BodyTooLarge(Exception):
    """The body exceeded the limit while it was read."""


class BodyLimit:
    """Refuses bodies over ``max_bytes``: by their stated length before a byte is read, else while reading."""

    def __init__(self, app: ASGIApp, *, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        length = dict(scope["headers"]).get(b"content-length", b"0")
        # The header may be missing (chunked) or false, so the bytes are counted below as well.
        if length.isdigit() and int(length) > self._max_bytes:
            await self._refuse(scope, receive, send)
            return
        received = 0
        started = False

        async def limited() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._max_bytes:
                raise BodyTooLarge
            return message

        async def noted(message: Message) -> None:
            nonlocal started
            if received > self._max_bytes and not started:
                return  # FastAPI turns BodyTooLarge into its own 400; the 413 below replaces it
            started = True
            await send(message)

        with suppress(BodyTooLarge):
            await self._app(scope, limited, noted)
        if received > self._max_bytes and not started:
            await self._refuse(scope, receive, send)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = error_response(
            413,
            "too_large",
            f"the request is larger than {self._max_bytes // MEBIBYTE} MiB",
            trace_id=scope["state"]["trace_id"],
            hint="send the end of the log",
        )
        await response(scope, receive, send)
