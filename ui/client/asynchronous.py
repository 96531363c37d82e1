"""The client for programs with an event loop."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

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
Item = TypeVar("Item", covariant=True)
PAGE_SIZE = 100
"""Items fetched at once; the service allows 200."""


class Page(Protocol[Item]):
    @property
    def items(self) -> Sequence[Item]: ...


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
        return await self._post(Answer, "/v1/ask", **body)

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
        return await self._post(Report, "/v1/check", attachments=files(attachments), language=language)

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
        body = {"attachments": files(attachments), "good": files(good), "question": question}
        return await self._post(Audit, "/v1/audit", **body, possible=possible, language=language)

    async def diff(self, good: Files, bad: Files, *, language: PageLanguage = "en") -> Diff:
        """What differs between the files of a run that works and of one that fails; nothing is stored."""
        return await self._post(Diff, "/v1/diff", good=files(good), bad=files(bad), language=language)

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
        return await self._post(Hits, "/v1/search", query=query, top_k=top_k, filters=filters, language=language)

    def cases(
        self, *, framework: str | None = None, family: str | None = None, language: PageLanguage = "en"
    ) -> AsyncGenerator[CaseSummary, None]:
        """All cases by id, fetched page by page."""
        return self._all(CasePage, "/v1/cases", framework=framework, family=family, language=language)

    async def case(self, case_id: str, *, language: PageLanguage = "en") -> CaseDocument:
        return await self._get(CaseDocument, f"/v1/cases/{segment(case_id)}", language=language)

    def mechanisms(
        self, *, family: str | None = None, language: PageLanguage = "en"
    ) -> AsyncGenerator[MechanismSummary, None]:
        """All mechanisms by id, fetched page by page."""
        return self._all(MechanismPage, "/v1/mechanisms", family=family, language=language)

    async def mechanism(self, mechanism_id: str, *, language: PageLanguage = "en") -> MechanismDocument:
        return await self._get(MechanismDocument, f"/v1/mechanisms/{segment(mechanism_id)}", language=language)

    def rules(
        self, *, framework: str | None = None, language: PageLanguage = "en"
    ) -> AsyncGenerator[RuleSummary, None]:
        """All rules by id, fetched page by page."""
        return self._all(RulePage, "/v1/rules", framework=framework, language=language)

    async def rule(self, rule_id: str, *, language: PageLanguage = "en") -> RuleDocument:
        return await self._get(RuleDocument, f"/v1/rules/{segment(rule_id)}", language=language)

    async def feedback(self, answer_id: str, reaction: Reaction, *, reason: str = "", comment: str = "") -> None:
        """Say whether an answer helped; a second call replaces the first."""
        body = {"answer_id": answer_id, "reaction": reaction, "reason": reason, "comment": comment}
        await self._post(FeedbackReceipt, "/v1/feedback", **body)

    async def answer(self, answer_id: str) -> Answer:
        """A stored answer."""
        return await self._get(Answer, f"/v1/answers/{segment(answer_id)}")

    def conversations(self) -> AsyncGenerator[ConversationSummary, None]:
        """The conversations of this key, the latest first, fetched page by page."""
        return self._all(ConversationPage, "/v1/conversations")

    def conversation(self, conversation_id: str) -> AsyncGenerator[ConversationTurn, None]:
        """What was asked in a conversation of this key, oldest first, fetched page by page."""
        return self._all(ConversationDocument, f"/v1/conversations/{segment(conversation_id)}")

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
        return await self._get(Versions, "/version")

    async def _get(self, kind: type[T], path: str, **params: str | None) -> T:
        return await self._send(Call(method="GET", path=path, kind=kind, params=without_none(params)))

    async def _post(self, kind: type[T], path: str, **body: Any) -> T:
        return await self._send(Call(method="POST", path=path, kind=kind, body=body))

    async def _all(self, kind: type[Page[T]], path: str, **filters: str | None) -> AsyncGenerator[T, None]:
        offset, more = 0, True
        while more:
            page = await self._get(kind, path, **filters, offset=str(offset), limit=str(PAGE_SIZE))
            for item in page.items:
                yield item
            offset, more = offset + len(page.items), len(page.items) == PAGE_SIZE

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
