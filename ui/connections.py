"""Connections that cost nothing to open: a request's head must come in time, and there is an end to their number.

Below every route, because what is never a whole request never gets there.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Container
from contextlib import suppress
from typing import ClassVar, Protocol

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from trainmedic.service.access.limits import network_of

HEAD_S = 10.0
"""From the opening of a connection, or the first byte of a further request, to the end of the request's head."""
REST_S = 60.0
"""For the rest of a body that was refused: its sender should read why, and cannot before it has sent everything."""
MOST_OF_ADDRESS = 512
"""A browser opens six, so eighty people may work behind one address."""
MOST_FILES = 65_536
"""The number of open files asked of a system without a limit; no service needs more."""
OWN_FILES = 256
"""Files that are left to everything else: database, index, processes that read, modules of the pages."""
TOO_MANY = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 5\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Closable(Protocol):
    def close(self) -> None: ...


class Connections:
    """The open connections. ``trusted``: proxies, each of which stands for many clients."""

    def __init__(self, most: int, most_of_address: int = MOST_OF_ADDRESS, trusted: Container[str] = ()) -> None:
        self._most, self._most_of_address, self._trusted = most, most_of_address, trusted
        self._clients: dict[Closable, str] = {}
        self._counts: Counter[str] = Counter()
        self._idle: dict[Closable, None] = {}

    def opened(self, connection: Closable, address: str) -> bool:
        """Count a connection; False if its address has too many, or if there is room for no more.

        Where room is short, the one that has waited longest for a request is closed.
        """
        client = "" if address in self._trusted else network_of(address)
        if client and self._counts[client] >= self._most_of_address:
            return False
        if len(self._clients) >= self._most:
            oldest = next(iter(self._idle), None)
            if oldest is None:
                return False
            self.lost(oldest)
            oldest.close()
        self._clients[connection] = client
        self._counts[client] += 1
        self._idle[connection] = None
        return True

    def idle(self, connection: Closable) -> None:
        """A connection waits for its next request."""
        if connection in self._clients:
            self._idle[connection] = None

    def busy(self, connection: Closable) -> None:
        """The head of a request has come."""
        self._idle.pop(connection, None)

    def lost(self, connection: Closable) -> None:
        self._idle.pop(connection, None)
        client = self._clients.pop(connection, None)
        if client is None:
            return
        self._counts[client] -= 1
        if not self._counts[client]:
            del self._counts[client]


class LimitedProtocol(HttpToolsProtocol):
    """One of ``open_connections``. uvicorn's own timeout begins only after a response."""

    open_connections: ClassVar[Connections]
    head_s: ClassVar[float] = HEAD_S
    rest_s: ClassVar[float] = REST_S
    _deadline: asyncio.TimerHandle | None = None
    _whole = True
    """Whether the last request has come to its end."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.open_connections.opened(self, self.client[0] if self.client else ""):
            self._expect()
        else:
            transport.write(TOO_MANY)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.open_connections.lost(self)
        self._arrived()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._expect()  # before it is parsed: the end of a head ends its deadline
        super().data_received(data)

    def on_message_begin(self) -> None:
        self._whole = False
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._arrived()
        self.open_connections.busy(self)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._whole = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._answering():
            self.open_connections.idle(self)

    def close(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        """Nothing here is upgraded, and anyone could fill the log."""

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _expect(self) -> None:
        """Begin to wait for a request, unless one is being answered or waited for."""
        if self._deadline is None and not self._answering():
            self._deadline = self.loop.call_later(self.head_s if self._whole else self.rest_s, self.close)

    def _arrived(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def protocol_of(connections: Connections, **seconds: float) -> type[LimitedProtocol]:
    """The HTTP protocol of a server whose connections are ``connections``; ``seconds`` replaces its deadlines."""
    return type("LimitedProtocol", (LimitedProtocol,), {"open_connections": connections, **seconds})


def room() -> int:
    """How many connections may be open, after letting this process open as many files as the system allows it."""
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return MOST_FILES
    files, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if files != resource.RLIM_INFINITY and files < wanted:
        with suppress(ValueError, OSError):  # macOS says "no limit" and has one
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            files = wanted
    files = MOST_FILES if files == resource.RLIM_INFINITY else files
    return max(files - OWN_FILES, files // 2)
