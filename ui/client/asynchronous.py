"""The client for programs with an event loop. `ui.client.synchronous` has the same methods without one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping
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


class AsyncClient:
    """Calls one service. To be closed, or used with ``async with``; belongs to one event loop.

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
        self._http = httpx.AsyncClient(**requests.options(base_url, api_key, timeout_s))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Give the connections back."""
        await self._http.aclose()

    async def ask(
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
        return await self._send(requests.ask(body))

    async def stream(
        self,
        question: str = "",
        attachments: Mapping[str, str] | None = None,
        *,
        conversation_id: str | None = None,
        language: Language = "auto",
        top_k: int = 5,
        mode: Mode = "auto",
    ) -> AsyncGenerator[Delta | Step | Answer, None]:
        """The same as it comes: pieces of the text and steps of an investigation, and at the end the answer."""
        body = requests.ask_body(question, attachments, conversation_id, language, top_k, mode)
        with self._failures():
            async with self._http.stream("POST", "/v1/ask", json={**body, "stream": True}) as response:
                if not response.is_success:
                    await response.aread()
                    raise requests.failure(response)
                events = requests.Events(response)
                async for line in response.aiter_lines():
                    part = events.feed(line)
                    if part is not None:
                        yield part
                    if isinstance(part, Answer):
                        return
                raise requests.interrupted()

    async def check(self, attachments: Mapping[str, str], *, language: Shown = "en") -> Report:
        """The rules alone over files of one run; nothing is stored."""
        return await self._send(requests.check(attachments, language))

    async def search(
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
        return await self._send(requests.search(query, top_k, filters, language))

    async def cases(
        self, *, framework: str | None = None, family: str | None = None, language: Shown = "en"
    ) -> AsyncGenerator[CaseSummary, None]:
        """All cases by id, page after page as they are taken."""
        filters = {"framework": framework, "family": family, "language": language}
        offset, total = 0, 1
        while offset < total:
            page = await self._send(requests.page(CasePage, "/v1/cases", offset, filters))
            for item in page.items:
                yield item
            offset, total = offset + len(page.items), page.total if page.items else 0

    async def case(self, case_id: str, *, language: Shown = "en") -> CaseDocument:
        """One case."""
        return await self._send(requests.case(case_id, language))

    async def rules(self, *, framework: str | None = None, language: Shown = "en") -> AsyncGenerator[RuleSummary, None]:
        """All rules by id, page after page as they are taken."""
        filters = {"framework": framework, "language": language}
        offset, total = 0, 1
        while offset < total:
            page = await self._send(requests.page(RulePage, "/v1/rules", offset, filters))
            for item in page.items:
                yield item
            offset, total = offset + len(page.items), page.total if page.items else 0

    async def rule(self, rule_id: str, *, language: Shown = "en") -> RuleDocument:
        """One rule."""
        return await self._send(requests.rule(rule_id, language))

    async def feedback(self, answer_id: str, reaction: Reaction, *, reason: str = "", comment: str = "") -> None:
        """Say whether an answer helped; a second time replaces the first."""
        await self._send(requests.feedback(answer_id, reaction, reason, comment))

    async def answer(self, answer_id: str) -> Answer:
        """An answer given before."""
        return await self._send(requests.answer(answer_id))

    async def ready(self) -> Readiness:
        """Whether the service can answer, and what of it is down."""
        return await self._send(requests.READY)

    async def version(self) -> Versions:
        """What is running."""
        return await self._send(requests.VERSION)

    async def _send(self, call: Call[T]) -> T:
        with self._failures():
            attempts = 1 + (self._retries if call.repeatable else 0)
            for attempt in range(attempts):
                response = None
                try:
                    response = await self._http.request(call.method, call.path, json=call.body, params=call.params)
                    if response.status_code not in requests.AGAIN - call.accepted:
                        break
                except httpx.TransportError:
                    if attempt + 1 == attempts:
                        raise
                if attempt + 1 < attempts:
                    await asyncio.sleep(requests.delay_s(attempt, response))
            assert response is not None
            return requests.answered(call, response)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """What goes wrong inside with the connection is a `ServiceError`."""
        try:
            yield
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise requests.broken(error, self._base_url) from error
