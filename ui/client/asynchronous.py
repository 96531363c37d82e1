"""The client for programs with an event loop."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
from httpx_sse import EventSource
from tenacity import AsyncRetrying

from trainmedic.service.api.resources import (
    CaseDocument,
    CasePage,
    CaseSummary,
    ConversationDocument,
    ConversationPage,
    ConversationSummary,
    ConversationTurn,
    FeedbackReceipt,
    Hits,
    MechanismDocument,
    MechanismPage,
    MechanismSummary,
    Readiness,
    RuleDocument,
    RulePage,
    RuleSummary,
    Versions,
)
from trainmedic.ui.client import requests
from trainmedic.ui.client.models import Answer, Audit, Delta, Diff, Report, Step
from trainmedic.ui.client.requests import (
    Call,
    Files,
    Language,
    Mode,
    PageLanguage,
    Reaction,
    files,
    segment,
    without_none,
)

T = TypeVar("T")
Page = TypeVar("Page", CasePage, MechanismPage, RulePage)
PAGE_SIZE = 100
"""Items fetched at once; the service allows 200."""


class AsyncClient:
    """Calls one service. Close it, or use it with ``async with``.

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
        self._http = httpx.AsyncClient(**requests.options(base_url, api_key, timeout_s))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def ask(
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
        body = ask_body(question, attachments, conversation_id, language, top_k, mode)
        return await self._send(Call(method="POST", path="/v1/ask", kind=Answer, body=body))

    async def stream(
        self,
        question: str = "",
        attachments: Files | None = None,
        *,
        conversation_id: str | None = None,
        language: Language = "auto",
        top_k: int = 5,
        mode: Mode = "auto",
    ) -> AsyncGenerator[Delta | Step | Answer, None]:
        """The same as a stream: pieces of the text, steps of an investigation, and at the end the answer."""
        body = ask_body(question, attachments, conversation_id, language, top_k, mode)
        with self._failures():
            async with self._http.stream("POST", "/v1/ask", json={**body, "stream": True}) as response:
                if not response.is_success:
                    await response.aread()
                    raise requests.response_error(response)
                async for event in EventSource(response).aiter_sse():
                    part = requests.stream_part(event, response)
                    if part is not None:
                        yield part
                    if isinstance(part, Answer):
                        return
                raise requests.interrupted()

    async def check(self, attachments: Files, *, language: PageLanguage = "en") -> Report:
        """Run the rules alone on the files of one run; nothing is stored."""
        body = {"attachments": files(attachments), "language": language}
        return await self._send(Call(method="POST", path="/v1/check", kind=Report, body=body))

    async def audit(
        self,
        attachments: Files,
        *,
        good: Files | None = None,
        question: str = "",
        possible: bool = False,
        language: PageLanguage = "en",
    ) -> Audit:
        """The known defects of an environment's packages, and the versions without them; nothing is stored.

        ``good`` are the package lists of an environment that works, ``possible`` also clears what may be there.
        """
        body = {
            "attachments": files(attachments),
            "good": files(good),
            "question": question,
            "possible": possible,
            "language": language,
        }
        return await self._send(Call(method="POST", path="/v1/audit", kind=Audit, body=body))

    async def diff(self, good: Files, bad: Files, *, language: PageLanguage = "en") -> Diff:
        """What differs between the files of a run that works and of one that fails; nothing is stored."""
        body = {"good": files(good), "bad": files(bad), "language": language}
        return await self._send(Call(method="POST", path="/v1/diff", kind=Diff, body=body))

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
        filters = without_none({"framework": framework, "family": family, "kind": kind})
        body = {"query": query, "top_k": top_k, "filters": filters, "language": language}
        return await self._send(Call(method="POST", path="/v1/search", kind=Hits, body=body))

    async def cases(
        self, *, framework: str | None = None, family: str | None = None, language: PageLanguage = "en"
    ) -> AsyncGenerator[CaseSummary, None]:
        """All cases by id, fetched page by page."""
        filters = {"framework": framework, "family": family, "language": language}
        async for page in self._pages(CasePage, "/v1/cases", filters):
            for item in page.items:
                yield item

    async def case(self, case_id: str, *, language: PageLanguage = "en") -> CaseDocument:
        path = f"/v1/cases/{segment(case_id)}"
        return await self._send(Call(method="GET", path=path, kind=CaseDocument, params={"language": language}))

    async def mechanisms(
        self, *, family: str | None = None, language: PageLanguage = "en"
    ) -> AsyncGenerator[MechanismSummary, None]:
        """All mechanisms by id, fetched page by page."""
        filters = {"family": family, "language": language}
        async for page in self._pages(MechanismPage, "/v1/mechanisms", filters):
            for item in page.items:
                yield item

    async def mechanism(self, mechanism_id: str, *, language: PageLanguage = "en") -> MechanismDocument:
        path = f"/v1/mechanisms/{segment(mechanism_id)}"
        return await self._send(Call(method="GET", path=path, kind=MechanismDocument, params={"language": language}))

    async def rules(
        self, *, framework: str | None = None, language: PageLanguage = "en"
    ) -> AsyncGenerator[RuleSummary, None]:
        """All rules by id, fetched page by page."""
        async for page in self._pages(RulePage, "/v1/rules", {"framework": framework, "language": language}):
            for item in page.items:
                yield item

    async def rule(self, rule_id: str, *, language: PageLanguage = "en") -> RuleDocument:
        path = f"/v1/rules/{segment(rule_id)}"
        return await self._send(Call(method="GET", path=path, kind=RuleDocument, params={"language": language}))

    async def feedback(self, answer_id: str, reaction: Reaction, *, reason: str = "", comment: str = "") -> None:
        """Say whether an answer helped; a second call replaces the first."""
        body = {"answer_id": answer_id, "reaction": reaction, "reason": reason, "comment": comment}
        await self._send(Call(method="POST", path="/v1/feedback", kind=FeedbackReceipt, body=body))

    async def answer(self, answer_id: str) -> Answer:
        """A stored answer."""
        return await self._send(Call(method="GET", path=f"/v1/answers/{segment(answer_id)}", kind=Answer))

    async def conversations(self) -> AsyncGenerator[ConversationSummary, None]:
        """The conversations of this key, the latest first, fetched page by page."""
        offset, more = 0, True
        while more:
            params = {"offset": str(offset), "limit": str(PAGE_SIZE)}
            page = await self._send(Call(method="GET", path="/v1/conversations", kind=ConversationPage, params=params))
            for item in page.items:
                yield item
            offset, more = offset + len(page.items), len(page.items) == PAGE_SIZE

    async def conversation(self, conversation_id: str) -> AsyncGenerator[ConversationTurn, None]:
        """What was asked in a conversation of this key, oldest first, fetched page by page."""
        path, kind = f"/v1/conversations/{segment(conversation_id)}", ConversationDocument
        offset, more = 0, True
        while more:
            params = {"offset": str(offset), "limit": str(PAGE_SIZE)}
            page = await self._send(Call(method="GET", path=path, kind=kind, params=params))
            for item in page.items:
                yield item
            offset, more = offset + len(page.items), len(page.items) == PAGE_SIZE

    async def delete_conversation(self, conversation_id: str) -> None:
        """Delete a conversation with its answers, its feedback and what others went on with from its links."""
        path = f"/v1/conversations/{segment(conversation_id)}"
        await self._send(Call(method="DELETE", path=path, kind=type(None)))

    async def ready(self) -> Readiness:
        """Whether the service can answer, and which parts are down."""
        # An unready service answers 503 with the same body.
        return await self._send(Call(method="GET", path="/readyz", kind=Readiness, accepted=frozenset({503})))

    async def version(self) -> Versions:
        """The versions of the service and its knowledge."""
        return await self._send(Call(method="GET", path="/version", kind=Versions))

    async def _pages(
        self, kind: type[Page], path: str, filters: Mapping[str, str | None]
    ) -> AsyncGenerator[Page, None]:
        offset, total = 0, 1
        while offset < total:
            params = {**without_none(filters), "offset": str(offset), "limit": str(PAGE_SIZE)}
            page = await self._send(Call(method="GET", path=path, kind=kind, params=params))
            yield page
            # An empty page ends it, whatever total the service claims.
            offset, total = offset + len(page.items), page.total if page.items else 0

    async def _send(self, call: Call[T]) -> T:
        with self._failures():
            retrying = AsyncRetrying(**call.retrying(self._retries))
            response: httpx.Response = await retrying(
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


def ask_body(
    question: str,
    attachments: Files | None,
    conversation_id: str | None,
    language: Language,
    top_k: int,
    mode: Mode,
) -> dict[str, Any]:
    fields = {"question": question, "attachments": files(attachments), "conversation_id": conversation_id}
    return without_none({**fields, "language": language, "top_k": top_k, "mode": mode})
