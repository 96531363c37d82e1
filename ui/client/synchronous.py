"""The client for ordinary programs. `ui.client.asynchronous` has the same methods to be awaited."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Self, TypeVar

import httpx

from trainmedic.ui.client import requests
from trainmedic.ui.client.models import (
    Answer,
    CaseDocument,
    CaseSummary,
    Delta,
    Hits,
    Readiness,
    Report,
    RuleDocument,
    RuleSummary,
    Step,
    Versions,
)
from trainmedic.ui.client.pages import CasePage, RulePage
from trainmedic.ui.client.requests import Call, Language, Mode, Reaction, Shown

T = TypeVar("T")


class Client:
    """Calls one service. To be closed, or used with ``with``; safe to share between threads.

    ``timeout_s`` bounds each wait: to connect, and for the next bytes. Reads that fail in passing (no connection,
    429, 502, 503, 504) are tried ``retries`` times more; questions, checks, searches and feedback never are.
    Every method raises `ServiceError`, and nothing else but for misuse.
    """

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8000",
        *,
        api_key: str | None = None,
        timeout_s: float = 60.0,
        retries: int = 2,
    ) -> None:
        self._base_url = base_url
        self._retries = retries
        self._http = httpx.Client(**requests.options(base_url, api_key, timeout_s))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the connections back."""
        self._http.close()

    def ask(
        self,
        question: str = "",
        attachments: Mapping[str, str] | None = None,
        *,
        conversation_id: str | None = None,
        language: Language = "auto",
        top_k: int = 5,
        mode: Mode = "auto",
    ) -> Answer:
        """Why a run is broken. ``attachments`` maps names to contents, see `read_files`."""
        body = requests.ask_body(question, attachments, conversation_id, language, top_k, mode)
        return self._send(requests.ask(body))

    def stream(
        self,
        question: str = "",
        attachments: Mapping[str, str] | None = None,
        *,
        conversation_id: str | None = None,
        language: Language = "auto",
        top_k: int = 5,
        mode: Mode = "auto",
    ) -> Iterator[Delta | Step | Answer]:
        """The same as it comes: pieces of the text and steps of an investigation, and at the end the answer."""
        body = requests.ask_body(question, attachments, conversation_id, language, top_k, mode)
        with (
            self._failures(),
            self._http.stream("POST", "/v1/ask", json={**body, "stream": True}) as response,
        ):
            if not response.is_success:
                response.read()
                raise requests.failure(response)
            events = requests.Events(response)
            for line in response.iter_lines():
                part = events.feed(line)
                if part is not None:
                    yield part
                if isinstance(part, Answer):
                    return
            raise requests.interrupted()

    def check(self, attachments: Mapping[str, str], *, language: Shown = "en") -> Report:
        """The rules alone over files of one run; nothing is stored."""
        return self._send(requests.check(attachments, language))

    def search(
        self,
        query: str,
        *,
        top_k: int = 10,
        framework: str | None = None,
        family: str | None = None,
        kind: str | None = None,
        language: Language = "auto",
    ) -> Hits:
        """The cases nearest to a text."""
        filters = {"framework": framework, "family": family, "kind": kind}
        return self._send(requests.search(query, top_k, filters, language))

    def cases(
        self, *, framework: str | None = None, family: str | None = None, language: Shown = "en"
    ) -> Iterator[CaseSummary]:
        """All cases by id, page after page as they are taken."""
        filters = {"framework": framework, "family": family, "language": language}
        offset, total = 0, 1
        while offset < total:
            page = self._send(requests.page(CasePage, "/v1/cases", offset, filters))
            yield from page.items
            offset, total = offset + len(page.items), page.total if page.items else 0

    def case(self, case_id: str, *, language: Shown = "en") -> CaseDocument:
        """One case."""
        return self._send(requests.case(case_id, language))

    def rules(self, *, framework: str | None = None, language: Shown = "en") -> Iterator[RuleSummary]:
        """All rules by id, page after page as they are taken."""
        filters = {"framework": framework, "language": language}
        offset, total = 0, 1
        while offset < total:
            page = self._send(requests.page(RulePage, "/v1/rules", offset, filters))
            yield from page.items
            offset, total = offset + len(page.items), page.total if page.items else 0

    def rule(self, rule_id: str, *, language: Shown = "en") -> RuleDocument:
        """One rule."""
        return self._send(requests.rule(rule_id, language))

    def feedback(self, answer_id: str, reaction: Reaction, *, reason: str = "", comment: str = "") -> None:
        """Say whether an answer helped; a second time replaces the first."""
        self._send(requests.feedback(answer_id, reaction, reason, comment))

    def answer(self, answer_id: str) -> Answer:
        """An answer given before."""
        return self._send(requests.answer(answer_id))

    def ready(self) -> Readiness:
        """Whether the service can answer, and what of it is down."""
        return self._send(requests.READY)

    def version(self) -> Versions:
        """What is running."""
        return self._send(requests.VERSION)

    def _send(self, call: Call[T]) -> T:
        with self._failures():
            attempts = 1 + (self._retries if call.repeatable else 0)
            for attempt in range(attempts):
                response = None
                try:
                    response = self._http.request(call.method, call.path, json=call.body, params=call.params)
                    if response.status_code not in requests.AGAIN - call.accepted:
                        break
                except httpx.TransportError:
                    if attempt + 1 == attempts:
                        raise
                if attempt + 1 < attempts:
                    time.sleep(requests.delay_s(attempt, response))
            assert response is not None
            return requests.answered(call, response)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """What goes wrong inside with the connection is a `ServiceError`."""
        try:
            yield
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise requests.broken(error, self._base_url) from error
