"""A server that answers as its script says, and keeps what it was sent."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Respond = Callable[[BaseHTTPRequestHandler], None]


class Scripted(ThreadingHTTPServer):
    """Answers the n-th request with the n-th response of its script, further ones with the last."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, *script: Respond) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script
        self.posted: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone is no error here."""


class _Handler(BaseHTTPRequestHandler):
    server: Scripted

    def respond(self) -> None:
        respond = self.server.script[min(len(self.server.posted), len(self.server.script) - 1)]
        self.server.posted.append(self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode())
        respond(self)

    do_GET = do_POST = respond

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing to the terminal."""


def sends(status: int, body: str = "{}", kind: str = "application/json", **headers: str) -> Respond:
    def respond(handler: BaseHTTPRequestHandler) -> None:
        data = body.encode()
        handler.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(data)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(data)

    return respond
