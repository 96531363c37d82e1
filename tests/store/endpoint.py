"""An OpenAI-compatible embeddings endpoint on loopback, with real sockets."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

import numpy as np

from tests.store.knowledge import direction

Answer = tuple[int, bytes]


class Endpoint:
    """The embeddings call of a server. Its vectors are bags of words of length 3, so none comes normalised.

    ``answers`` stand in for the next answers, one each; None: the request is answered as usual.
    """

    def __init__(self, dimension: int = 32, *, only_floats: bool = False) -> None:
        self.dimension = dimension
        self.only_floats = only_floats
        self.longest: int | None = None
        self.backwards = False
        self.answers: list[Answer | None] = []
        self.requests: list[tuple[Mapping[str, str], dict[str, Any]]] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                endpoint.requests.append(({n.lower(): v for n, v in self.headers.items()}, body))
                status, data = endpoint.answer(self.path, body)
                with suppress(ConnectionError):  # whoever waited too long has gone
                    self.send_response(status)
                    self.send_header("content-type", "application/json")
                    self.send_header("content-length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def texts(self) -> list[list[str]]:
        return [body["input"] for _, body in self.requests]

    def answer(self, path: str, body: Mapping[str, Any]) -> Answer:
        if self.answers and (scripted := self.answers.pop(0)) is not None:
            return scripted
        if path != "/v1/embeddings":
            return failing(404, "Not Found")
        if self.longest is not None and max(map(len, body["input"])) > self.longest:
            return failing(400, f"This model's maximum context length is {self.longest} tokens.")
        rows = [self._row(n, text, body) for n, text in enumerate(body["input"])]
        shown = rows[::-1] if self.backwards else rows
        return 200, json.dumps({"object": "list", "data": shown, "model": body["model"], "usage": {}}).encode()

    def _row(self, number: int, text: str, body: Mapping[str, Any]) -> dict[str, Any]:
        vector = 3 * words(text, self.dimension)
        packed = body.get("encoding_format") == "base64" and not self.only_floats
        shown: object = base64.b64encode(vector.tobytes()).decode() if packed else vector.tolist()
        return {"index": number, "object": "embedding", "embedding": shown}


def words(text: str, dimension: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Normalised; every word has its own direction."""
    row = np.full(dimension, 1e-3, np.float32)
    for word in text.lower().split():
        row += direction(word, dimension)
    return np.asarray(row / np.linalg.norm(row), np.float32)


def failing(status: int, message: str) -> Answer:
    return status, json.dumps({"error": {"message": message, "type": "Error", "code": status}}).encode()
