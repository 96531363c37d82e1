"""The client: one method for each call that asks or checks something."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

import httpx
from httpx_sse import EventSource

from trainmedic.service.api.resources import FeedbackReceipt, Hits, Versions
from trainmedic.ui.client import requests
from trainmedic.ui.client.failure import ServiceError
from trainmedic.ui.client.models import Answer, Audit, Delta, Diff, Report, Step
from trainmedic.ui.client.requests import Files, files

T = TypeVar("T")
Language = Literal["auto", "en", "zh"]
PageLanguage = Literal["en", "zh"]
Mode = Literal["auto", "deterministic", "investigate"]
Reaction = Literal["up", "down", "resolved"]


class Client:
    """Calls one service. Close it, or use it with ``with``. Safe to use from several threads.

    ``timeout_s`` bounds each wait: to connect, and for the next bytes. Nothing is repeated. Every method raises
    `ServiceError` and, except for misuse, nothing else.
    """

    def __init__(
        self, base_url: str = "http://127.0.0.1:8000", *, api_key: str | None = None, timeout_s: float = 60.0
    ) -> None:
        self._base_url = base_url
        headers = {"User-Agent": "trainmedic-client", "Accept": "application/json, text/event-stream"}
        if api_key:
            headers["Authorization"] = f"Bearer {api_key}"
        self._http = httpx.Client(base_url=base_url, headers=headers, timeout=timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def ask(
        self,
        question: str = "",
        attachments: Files | None = None,
        *,
        conversation_id: str | None = None,
        language: Language = "auto",
        top_k: int = 5,
        mode: Mode = "auto",
    ) -> Answer:
        """Find out why a run is broken. ``attachments`` maps names to contents, see `read_files`."""
        body = {"conversation_id": conversation_id} if conversation_id is not None else {}
        return self._post(
            Answer,
            "/v1/ask",
            question=question,
            attachments=files(attachments),
            language=language,
            top_k=top_k,
            mode=mode,
            **body,
        )

    def stream(
        self, question: str = "", attachments: Files | None = None, **options: Any
    ) -> Generator[Delta | Step | Answer, None, None]:
        """The same as a stream: pieces of the text, steps of an investigation, and at the end the answer.

        ``options`` are those of `ask`.
        """
        body = {"question": question, "attachments": files(attachments), **options, "stream": True}
        with self._failures(), self._http.stream("POST", "/v1/ask", json=body) as response:
            if not response.is_success:
                response.read()
                raise requests.service_error(response.text, response, status=response.status_code)
            for event in EventSource(response).iter_sse():
                part = requests.stream_part(event, response)
                if part is not None:
                    yield part
                if isinstance(part, Answer):
                    return
            raise ServiceError("interrupted", "the stream ended before its answer", hint="ask again")

    def check(self, attachments: Files, *, language: PageLanguage = "en") -> Report:
        """Run the rules alone on the files of one run; nothing is stored."""
        return self._post(Report, "/v1/check", attachments=files(attachments), language=language)

    def audit(self, attachments: Files, *, good: Files | None = None, language: PageLanguage = "en") -> Audit:
        """The known defects of an environment's packages, and the versions without them; nothing is stored.

        ``good`` are the package lists of an environment that works.
        """
        return self._post(Audit, "/v1/audit", attachments=files(attachments), good=files(good), language=language)

    def diff(self, good: Files, bad: Files, *, language: PageLanguage = "en") -> Diff:
        """Differences between the files of a run that works and of one that fails; nothing is stored."""
        return self._post(Diff, "/v1/diff", good=files(good), bad=files(bad), language=language)

    def search(self, query: str, *, top_k: int = 10, language: Language = "auto", **filters: str) -> Hits:
        """The cases nearest to a text; ``filters`` are ``framework``, ``family`` and ``kind``."""
        return self._post(Hits, "/v1/search", query=query, top_k=top_k, filters=filters, language=language)

    def feedback(self, answer_id: str, reaction: Reaction, *, reason: str = "", comment: str = "") -> None:
        """Say whether an answer helped; a second call replaces the first."""
        body = {"answer_id": answer_id, "reaction": reaction, "reason": reason, "comment": comment}
        self._post(FeedbackReceipt, "/v1/feedback", **body)

    def answer(self, answer_id: str) -> Answer:
        """A stored answer."""
        return self._send(Answer, "GET", f"/v1/answers/{requests.segment(answer_id)}")

    def version(self) -> Versions:
        """The versions of the service and its knowledge."""
        return self._send(Versions, "GET", "/version")

    def _post(self, kind: type[T], path: str, **body: Any) -> T:
        return self._send(kind, "POST", path, json=body)

    def _send(self, kind: type[T], method: str, path: str, **request: Any) -> T:
        with self._failures():
            return requests.result(kind, self._http.request(method, path, **request))

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Turn connection errors into `ServiceError`."""
        try:
            yield
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise requests.connection_error(error, self._base_url) from error
