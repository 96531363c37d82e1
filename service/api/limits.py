"""What stands before every route, as plain ASGI: a trace id, a bound on the body, the bearer key, the metrics."""

from __future__ import annotations

import hmac
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry, Counter, Histogram

from trainmedic.service.answer import Answer
from trainmedic.service.api.errors import error_response, internal_error, log_unexpected
from trainmedic.service.history import Feedback

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN_PATHS = frozenset({"/livez", "/readyz", "/version"})
"""Health needs no key: probes have none, and it holds no secret."""
GUARDED_PREFIXES = ("/v1/", "/mcp", "/metrics", "/openapi.json")
SIGNED_PREFIX = "/slack/"
"""Requests that are signed; a service that Slack calls has a name in the world."""
TRACE_HEADER = b"x-trace-id"


class BodyTooLarge(Exception):
    """The body went over the bound while it was read."""


class Metrics:
    """Counts and durations of requests and answers, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "trainmedic_requests_total", "Requests by route and status", ["route", "code"], registry=self.registry
        )
        self.duration = Histogram(
            "trainmedic_request_duration_seconds", "Time to the whole response", ["route"], registry=self.registry
        )
        self.answers = Counter("trainmedic_answers_total", "Answers by verdict", ["verdict"], registry=self.registry)
        self.fired = Counter(
            "trainmedic_rule_fired_total", "Findings by rule", ["rule", "severity"], registry=self.registry
        )
        self.feedback = Counter("trainmedic_feedback_total", "Feedback", ["reaction"], registry=self.registry)

    def on_answer(self, answer: Answer) -> None:
        """Count the answer, and each rule that fired in it."""
        self.answers.labels(verdict=answer.verdict).inc()
        for finding in answer.findings:
            if finding.status == "fired":
                self.fired.labels(rule=finding.rule_id, severity=finding.severity).inc()

    def on_feedback(self, feedback: Feedback, previous: Feedback | None, answer: Mapping[str, Any]) -> None:
        """Count the feedback."""
        self.feedback.labels(reaction=feedback.reaction).inc()


class Gate:
    """The outermost layer. Refuses before a byte of the body is read where it can."""

    def __init__(
        self, app: App, *, keys: frozenset[str], max_bytes: int, metrics: Metrics, public_url: str = ""
    ) -> None:
        self._app = app
        self._keys = tuple(key.encode() for key in sorted(keys))
        self._max_bytes = max_bytes
        self._metrics = metrics
        self._public = (urlsplit(public_url).hostname or "").lower()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        trace_id = uuid.uuid4().hex
        scope.setdefault("state", {})["trace_id"] = trace_id
        started = time.perf_counter()
        status: int | None = None

        async def traced(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), (TRACE_HEADER, trace_id.encode())]
            await send(message)

        try:
            await self._serve(scope, receive, traced, trace_id)
        except Exception as error:
            # Here and not further out: the answer needs its trace id, and a server would log the message unmasked.
            log_unexpected(error, trace_id)
            if status is None:
                await internal_error(trace_id)(scope, receive, traced)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.requests.labels(route=route, code=str(status or 500)).inc()
            self._metrics.duration.labels(route=route).observe(time.perf_counter() - started)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, trace_id: str) -> None:
        headers = dict(scope["headers"])
        if not self._named(scope["path"], headers):
            refusal = error_response(
                421,
                "wrong_host",
                "this service is not known under that name",
                trace_id=trace_id,
                hint="set TRAINMEDIC_PUBLIC_URL to the address under which people open it",
            )
            await refusal(scope, receive, send)
            return
        if not self._admitted(scope["path"], headers):
            refusal = error_response(
                401,
                "unauthorized",
                "a valid key is needed",
                trace_id=trace_id,
                hint="send Authorization: Bearer <key>",
                headers={"WWW-Authenticate": "Bearer"},
            )
            await refusal(scope, receive, send)
            return
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self._max_bytes:
            await self._too_large(scope, receive, send, trace_id)
            return
        seen = 0
        begun = False

        async def bounded() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._max_bytes:
                raise BodyTooLarge
            return message

        async def noted(message: Message) -> None:
            nonlocal begun
            if seen > self._max_bytes and not begun:
                return  # the framework calls the body unparsable; below it is called too large
            begun = True
            await send(message)

        with suppress(BodyTooLarge):
            await self._app(scope, bounded, noted)
        if seen > self._max_bytes and not begun:
            await self._too_large(scope, receive, send, trace_id)

    def _named(self, path: str, headers: dict[bytes, bytes]) -> bool:
        """Whether the service is called under a name of its own; with keys or a signature it need not be."""
        if self._keys or path in OPEN_PATHS or path.startswith(SIGNED_PREFIX):
            return True
        return is_own_name(headers.get(b"host", b"").decode("latin-1"), self._public)

    async def _too_large(self, scope: Scope, receive: Receive, send: Send, trace_id: str) -> None:
        limit = self._max_bytes // (1024 * 1024)
        refusal = error_response(
            413,
            "too_large",
            f"the request is larger than {limit} MiB",
            trace_id=trace_id,
            hint="send the end of the log",
        )
        await refusal(scope, receive, send)

    def _admitted(self, path: str, headers: dict[bytes, bytes]) -> bool:
        if not self._keys or path in OPEN_PATHS or not path.startswith(GUARDED_PREFIXES):
            return True
        scheme, _, key = headers.get(b"authorization", b"").partition(b" ")
        # Every key is compared, so that the time taken says nothing about which one was close.
        matches = [hmac.compare_digest(key.strip(), known) for known in self._keys]
        return scheme.lower() == b"bearer" and any(matches)


def is_own_name(host: str, public: str = "") -> bool:
    """Whether a service without keys may be called under this name: an address, a name without a domain, or ``public``.

    A web page can let its own domain point at this machine and then read what is served here with its reader's
    browser (DNS rebinding). It cannot do so with an address, nor with a name that nobody can register.
    """
    try:
        name = (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return False
    if "." not in name or name == public or name.endswith(".localhost"):
        return True
    try:
        return bool(ip_address(name))
    except ValueError:
        return False
