"""The client for ordinary programs. Generated from `asynchronous.py`; do not edit."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Self, TypeVar

import httpx
from httpx_sse import EventSource
from tenacity import Retrying

from trainmedic.service.api.resources import (
    CaseDocument,
    CasePage,
    CaseSummary,
    Hits,
    Readiness,
    RuleDocument,
    RulePage,
    RuleSummary,
    Versions,
)
from trainmedic.ui.client import requests
from trainmedic.ui.client.models import Answer, Delta, Report, Step
from trainmedic.ui.client.requests import Call, Language, Mode, PageLanguage, Reaction

T = TypeVar("T")


class Client:
    """Calls one service. Close it, or use it with ``with``.

    ``timeout_s`` bounds each wait: to connect, and for the next bytes. Reads that fail for a moment (no connection,
    429, 502, 503, 504) are repeated up to ``retries`` times; questions, checks, searches and feedback never are.
    Every method raises `ServiceError` and, except for misuse, nothing else.
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
        """Close the connections."""
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
        """Find out why a run is broken. ``attachments`` maps names to contents, see `read_files`."""
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
    ) -> Generator[Delta | Step | Answer, None, None]:
        """The same as a stream: pieces of the text, steps of an investigation, and at the end the answer."""
        body = requests.ask_body(question, attachments, conversation_id, language, top_k, mode)
        with self._failures():
            with self._http.stream("POST", "/v1/ask", json={**body, "stream": True}) as response:
                if not response.is_success:
                    response.read()
                    raise requests.response_error(response)
                for event in EventSource(response).iter_sse():
                    part = requests.stream_part(event, response)
                    if part is not None:
                        yield part
                    if isinstance(part, Answer):
                        return
                raise requests.interrupted()

    def check(self, attachments: Mapping[str, str], *, language: PageLanguage = "en") -> Report:
        """Run the rules alone on the files of one run; nothing is stored."""
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
        self, *, framework: str | None = None, family: str | None = None, language: PageLanguage = "en"
    ) -> Generator[CaseSummary, None, None]:
        """All cases by id, fetched page by page."""
        filters = {"framework": framework, "family": family, "language": language}
        offset, total = 0, 1
        while offset < total:
            page = self._send(requests.page(CasePage, "/v1/cases", offset, filters))
            for item in page.items:
                yield item
            offset, total = offset + len(page.items), page.total if page.items else 0

    def case(self, case_id: str, *, language: PageLanguage = "en") -> CaseDocument:
        return self._send(requests.case(case_id, language))

    def rules(
        self, *, framework: str | None = None, language: PageLanguage = "en"
    ) -> Generator[RuleSummary, None, None]:
        """All rules by id, fetched page by page."""
        filters = {"framework": framework, "language": language}
        offset, total = 0, 1
        while offset < total:
            page = self._send(requests.page(RulePage, "/v1/rules", offset, filters))
            for item in page.items:
                yield item
            offset, total = offset + len(page.items), page.total if page.items else 0

    def rule(self, rule_id: str, *, language: PageLanguage = "en") -> RuleDocument:
        return self._send(requests.rule(rule_id, language))

    def feedback(self, answer_id: str, reaction: Reaction, *, reason: str = "", comment: str = "") -> None:
        """Say whether an answer helped; a second call replaces the first."""
        self._send(requests.feedback(answer_id, reaction, reason, comment))

    def answer(self, answer_id: str) -> Answer:
        """A stored answer."""
        return self._send(requests.answer(answer_id))

    def ready(self) -> Readiness:
        """Whether the service can answer, and which parts are down."""
        return self._send(requests.READY)

    def version(self) -> Versions:
        """The versions of the service and its knowledge."""
        return self._send(requests.VERSION)

    def _send(self, call: Call[T]) -> T:
        with self._failures():
            retrying = Retrying(**call.retrying(self._retries))
            response: httpx.Response = retrying(
                self._http.request, call.method, call.path, json=call.body, params=call.params
            )
            return requests.result(call, response)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Turn connection errors into `ServiceError`."""
        try:
            yield
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise requests.connection_error(error, self._base_url) from error
