"""The ASGI layers around every route, outermost first: proxies, trace id and metrics, host, access, size of the body.

Plain ASGI, because Starlette's `BaseHTTPMiddleware` hides a client's disconnect from the routes. Its
`TrustedHostMiddleware` knows lists of names only; the host check here admits any address and any undotted name.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from ipaddress import ip_address
from urllib.parse import urlsplit

from fastapi import FastAPI
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, StatusCode, use_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trainmedic.kb.errors import TooLarge
from trainmedic.service.access.gate import REFUSALS, Gate, Refused, address_of
from trainmedic.service.access.limits import client_of
from trainmedic.service.access.principals import ANYBODY
from trainmedic.service.access.proxies import TrustedProxies
from trainmedic.service.access.scopes import requirement
from trainmedic.service.access.slots import CLIENT
from trainmedic.service.api.errors import error_response, response_of, unexpected
from trainmedic.service.api.metrics import Metrics
from trainmedic.service.observers.tracing import TRACE_ID, fail, trace_id_of, tracer
from trainmedic.service.settings import MEBIBYTE, Settings

MAX_REQUEST = 80 * MEBIBYTE
"""The largest body of a request."""
OPEN_PATHS = frozenset({"/livez", "/readyz", "/version"})
"""Health needs no key: probes have none, and it holds no secret."""
SIGNED_PREFIXES = ("/slack/", "/feishu/", "/dingtalk/")
"""Signed requests; a service that a chat platform calls has a public name."""
TRACE_HEADER = b"x-trace-id"
TEMPLATE = "trainmedic.route"
"""The key in the scope for the route's path as declared."""
SLOWEST = 16 * 1024
"""Bytes of a body that must arrive per second."""
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
request_log = logging.getLogger("trainmedic.request")
RECORDED = ("ask", "admin")
RECORDED_READS = ("/v1/answers/{answer_id}",)
"""Reads that the audit log names: those of what someone pasted."""


def add_middleware(app: FastAPI, settings: Settings, metrics: Metrics, gate: Gate) -> None:
    """Wrap the application in all layers."""
    # The last one added is the outermost.
    app.add_middleware(BodyLimit, max_bytes=MAX_REQUEST, timeout_s=settings.request_timeout_s)
    app.add_middleware(Guard, gate=gate)
    if not settings.guarded:
        app.add_middleware(OwnHost, public_url=settings.public_url)
    app.add_middleware(Trace, metrics=metrics)
    app.add_middleware(TrustedProxies, trusted=settings.trusted_proxies)


def route_of(scope: Scope) -> str:
    """The pattern and not the path: every id would become a time series of its own.

    Of a request that is refused before the routing, the one that `Guard` knows.
    """
    return str(getattr(scope.get("route"), "path", scope.get(TEMPLATE) or "other"))


class Trace:
    """Gives each request a span and an id, sends the id with the response, and answers unexpected errors with it.
    Counts and times the requests by route.

    The id is that of the caller's trace, if a ``traceparent`` header names one. Each request is one line of the log,
    with its route and never its path, which may hold what someone searched for.
    """

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status, answering = time.perf_counter(), 500, False
        method = scope["method"] if scope["method"] in METHODS else "_OTHER"
        span = tracer.start_span(method, _caller(scope), SpanKind.SERVER)
        trace_id = trace_id_of(span)
        scope.setdefault("state", {})["trace_id"] = trace_id
        scope["fastapi.telemetry"] = None  # of applications mounted below; see `create_app`
        token = TRACE_ID.set(trace_id)

        async def traced(message: Message) -> None:
            nonlocal answering, status
            if message["type"] == "http.response.start":
                answering, status = True, message["status"]
                message["headers"] = [*message.get("headers", []), (TRACE_HEADER, trace_id.encode())]
            await send(message)

        self._metrics.in_progress.inc()
        try:
            with use_span(span, record_exception=False, set_status_on_exception=False):
                await self._app(scope, receive, traced)
        except Exception as error:
            fail(span, error)
            # Not left to the server, which would log the message unmasked and answer without the trace id.
            response = unexpected(error, trace_id, scope["path"])
            if not answering:
                await response(scope, receive, traced)
        finally:
            self._metrics.in_progress.dec()
            route, seconds = route_of(scope), time.perf_counter() - started
            self._metrics.requests.labels(route=route, code=str(status)).inc()
            self._metrics.duration.labels(route=route).observe(seconds)
            span.update_name(f"{method} {route}")
            span.set_attributes(
                {"http.request.method": method, "http.route": route, "http.response.status_code": status}
            )
            if status >= 500:
                span.set_status(StatusCode.ERROR)
            span.end()
            figures = {"route": route, "status": status, "seconds": round(seconds, 4)}
            request_log.info("%s %s", method, route, extra=figures)
            TRACE_ID.reset(token)


def _caller(scope: Scope) -> Context:
    """The context of the trace that the caller names."""
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    return TraceContextTextMapPropagator().extract(headers)


class OwnHost:
    """Refuses requests for a name that is not the service's own. Only for services without keys.

    A web page can let its own domain point at this machine and then read this service with its reader's browser (DNS
    rebinding). It cannot do so with an address, nor with a name that no one can register.
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
                path=scope["path"],
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


class Guard:
    """Asks the gate about each request, and hands on its principal (``state["principal"]``) and its route's path."""

    def __init__(self, app: ASGIApp, *, gate: Gate) -> None:
        self._app = app
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path, needed = requirement(scope["method"], scope["path"])
        if needed == "pages":  # they know more: cookies, and which of their parts ask
            await self._app(scope, receive, send)
            return
        scope[TEMPLATE] = path
        state, principal = scope["state"], ANYBODY
        action, status = f"{scope['method']} {path or 'of no route'}", 0

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = stored_nowhere(message.get("headers", []))
            await send(message)

        try:
            admission = await self._gate.admit(scope, needed)
            principal = state["principal"] = admission.principal
            if needed != "signed":
                CLIENT.set(client_of(principal, address_of(scope)))
            await self._app(scope, receive, with_headers(noted, admission.headers))
        except Refused as refused:
            principal = refused.principal
            response = response_of(refused.error, state["trace_id"], scope["path"], refused.headers)
            await response(scope, receive, noted)
        finally:
            if needed in RECORDED or path in RECORDED_READS or str(status) in REFUSALS:
                target = next(iter(scope.get("path_params", {}).values()), "") if status < 300 else ""
                await self._gate.record(scope, principal, action, str(status), str(target))


def stored_nowhere(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers of a response that no cache keeps, unless they say otherwise."""
    listed = list(headers)
    given = any(name.lower() == b"cache-control" for name, _ in listed)
    return listed if given else [*listed, (b"cache-control", b"no-store")]


def with_headers(send: Send, headers: Mapping[str, str]) -> Send:
    """``send`` that adds headers to the response."""
    added = [(name.lower().encode(), value.encode()) for name, value in headers.items()]

    async def adding(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *added]
        await send(message)

    return adding if added else send


class BodyRefused(Exception):
    """The body exceeded a limit while it was read."""


class BodyLimit:
    """Refuses bodies over ``max_bytes``: by their stated length before a byte is read, else while reading.

    A body must begin within ``timeout_s`` and come faster than `SLOWEST`, or its connection would be held for ever.
    """

    def __init__(self, app: ASGIApp, *, max_bytes: int, timeout_s: float) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s

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
        complete = slow = started = False
        begun = 0.0

        async def limited() -> Message:
            nonlocal received, complete, slow, begun
            if complete:
                return await receive()  # a disconnect, whenever it comes
            begun = begun or time.monotonic()
            try:
                async with asyncio.timeout(begun + self._timeout_s + received / SLOWEST - time.monotonic()):
                    message = await receive()
            except TimeoutError:
                slow = True
                raise BodyRefused from None
            received += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if received > self._max_bytes:
                raise BodyRefused
            return message

        async def noted(message: Message) -> None:
            nonlocal started
            if (slow or received > self._max_bytes) and not started:
                return  # FastAPI turns BodyRefused into its own 400; the responses below replace it
            started = True
            await send(message)

        with suppress(BodyRefused):
            await self._app(scope, limited, noted)
        if slow and not started:
            response = error_response(
                408,
                "request_timeout",
                "the request's body did not arrive in time",
                trace_id=scope["state"]["trace_id"],
                headers={"Connection": "close"},
            )
            await response(scope, receive, send)
        elif received > self._max_bytes and not started:
            await self._refuse(scope, receive, send)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        error = TooLarge(
            f"the request is larger than {self._max_bytes // MEBIBYTE} MiB", hint="send the end of the log"
        )
        await response_of(error, scope["state"]["trace_id"], scope["path"])(scope, receive, send)
