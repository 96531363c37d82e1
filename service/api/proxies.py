"""Which clients are proxies of ours, and what they may say about the request that they hand on."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, cast

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

BEHIND_PROXY = "behind_proxy"


class TrustedProxies:
    """Believes the forwarded headers of the proxies in ``trusted`` and of nobody else."""

    def __init__(self, app: ASGIApp, *, trusted: str) -> None:
        self._app: Any = ProxyHeadersMiddleware(app, trusted)  # type: ignore[arg-type]  # uvicorn has types of its own

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Asked here: uvicorn's layer puts the client in the place of the proxy.
        host, _ = scope.get("client") or ("", 0)
        if scope["type"] == "http" and host in self._app.trusted_hosts:
            scope.setdefault("state", {})[BEHIND_PROXY] = True
        await self._app(scope, receive, send)


def trusted_hosts(listed: str) -> Container[str]:
    """The addresses that a setting such as `trusted_proxies` names."""
    return cast(Container[str], ProxyHeadersMiddleware(_nothing, listed).trusted_hosts)  # type: ignore[arg-type]


def host_of(scope: Mapping[str, Any]) -> str:
    """The host that the browser asked for: what a trusted proxy says of it, else the header of the request."""
    headers: dict[bytes, bytes] = dict(scope["headers"])
    host = headers.get(b"host", b"")
    if scope.get("state", {}).get(BEHIND_PROXY):
        host = headers.get(b"x-forwarded-host", host)
    return host.decode("latin-1")


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    raise AssertionError("no application")
