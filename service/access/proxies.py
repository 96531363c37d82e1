"""Which clients are proxies of ours, and what they may say about the request that they hand on."""

from __future__ import annotations

import logging
from collections.abc import Container, Mapping
from typing import Any, cast

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

PEER = "peer"
"""The key in a request's state for the address of the trusted proxy that handed it on."""
FORWARDED = frozenset({b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip", b"via"})
log = logging.getLogger("trainmedic.access")


class TrustedProxies:
    """Believes the forwarded headers of the proxies in ``trusted`` and of no one else."""

    def __init__(self, app: ASGIApp, *, trusted: str) -> None:
        self._app = app
        self._believing: Any = ProxyHeadersMiddleware(app, trusted)  # type: ignore[arg-type]  # uvicorn's own types
        self._warned = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        host, _ = scope.get("client") or ("", 0)
        if host in self._believing.trusted_hosts:
            # Noted here: uvicorn's layer puts the client in the place of the proxy.
            scope.setdefault("state", {})[PEER] = host
            await self._believing(scope, receive, send)
            return
        if not self._warned and FORWARDED & {name for name, _ in scope["headers"]}:
            self._warned = True
            log.warning(
                "a forwarded header came from %s, which is not in trusted_proxies: it is ignored", host or "a socket"
            )
        await self._app(scope, receive, send)


def trusted_hosts(listed: str) -> Container[str]:
    """The addresses that a setting such as `trusted_proxies` names."""
    return cast(Container[str], ProxyHeadersMiddleware(_nothing, listed).trusted_hosts)  # type: ignore[arg-type]


def peer_of(scope: Mapping[str, Any]) -> str:
    """The trusted proxy that handed a request on; empty if the client connected itself."""
    return str(scope.get("state", {}).get(PEER, ""))


def host_of(scope: Mapping[str, Any]) -> str:
    """The host that the browser asked for: what a trusted proxy says of it, else the header of the request."""
    headers: dict[bytes, bytes] = dict(scope["headers"])
    host = headers.get(b"host", b"")
    if peer_of(scope):
        host = headers.get(b"x-forwarded-host", host)
    return host.decode("latin-1")


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    raise AssertionError("no application")
