"""The routes of the contract, each a few lines over the advisor."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from dataclasses import replace
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse

from trainmedic.kb.errors import InvalidRequest, NotFound, TooLarge, TrainmedicError
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report_view import ReportView
from trainmedic.kb.pages.render import render_cause, render_mechanism, render_rule
from trainmedic.kb.serialization import plain, to_json, to_json_once
from trainmedic.service.access.slots import Worker
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.schema import Answer, AuditView, DiffView, EffectiveReport, MessagesView, StepView
from trainmedic.service.answering import Answerer, Delta, Draft, Parts, StreamPart, final_answer
from trainmedic.service.api.conversations import add_conversation_routes, principal_of
from trainmedic.service.api.disconnect import until_disconnect
from trainmedic.service.api.errors import trace_id_of
from trainmedic.service.api.resources import (
    CaseDocument,
    CasePage,
    CaseSummary,
    FeedbackReceipt,
    Hits,
    MechanismDocument,
    MechanismPage,
    MechanismSummary,
    RuleDocument,
    RulePage,
    RuleSummary,
)
from trainmedic.service.api.schemas import (
    ANSWER_EVENTS,
    AskIn,
    AttachmentIn,
    AuditIn,
    CheckIn,
    DiffIn,
    ErrorOut,
    ExplainIn,
    FeedbackIn,
    SearchIn,
)
from trainmedic.service.dialogue.request import MAX_ATTACHMENTS
from trainmedic.service.storage.history import Feedback

T = TypeVar("T")
_ERROR = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorOut"}}}}
ERRORS: dict[int | str, dict[str, Any]] = {
    # By name, with one exception: FastAPI rebuilds a model for each route and code, which took a twentieth of a start.
    code: {"model": ErrorOut} if code == 422 else _ERROR
    for code in (400, 401, 403, 404, 413, 422, 429, 500, 503, 504)
}
DELTA_CHARACTERS = 64
"""Size of one ``answer.delta`` of a template answer."""
Language = Annotated[str, Query(pattern="^(en|zh)$")]
Offset = Annotated[int, Query(ge=0, le=1_000_000)]
Limit = Annotated[int, Query(ge=1, le=200)]


def make_router(advisor: Advisor, answerer: Answerer, worker: Worker) -> APIRouter:
    """All ``/v1`` routes."""
    router = APIRouter(prefix="/v1", responses=ERRORS)

    def bounded(attachments: list[AttachmentIn]) -> None:
        if len(attachments) > MAX_ATTACHMENTS:
            raise TooLarge(f"{len(attachments)} attachments; at most {MAX_ATTACHMENTS} in one request")

    @router.post("/ask", response_model=Answer, responses=ANSWER_EVENTS)
    async def ask(body: AskIn, request: Request) -> Response:
        """Diagnose: the whole answer, or with ``stream`` the text as it comes and then the answer."""
        bounded(body.attachments)
        asked = replace(body.value(), owner=principal_of(request).id)
        parts = answerer.stream(asked, trace_id_of(request), worker.run)
        if body.stream:
            first = await anext(parts)  # errors of the request must come before the stream begins
            return event_stream(events(first, parts))
        return json_response(await until_disconnect(request, final_answer(parts)))

    @router.post("/check", response_model=ReportView)
    async def check(body: CheckIn) -> Response:
        """Run the rules alone over files that belong to one run."""
        bounded(body.attachments)
        attachments = tuple(values(body.attachments))
        return json_response(await worker.run(lambda: advisor.check(attachments, body.language)))

    @router.post("/effective", response_model=EffectiveReport)
    async def effective(body: CheckIn) -> Response:
        """Every option that decides the runs of these files, with its value and where that comes from."""
        bounded(body.attachments)
        attachments = tuple(values(body.attachments))
        return json_response(await worker.run(lambda: advisor.effective(attachments, body.language)))

    @router.post("/search")
    async def search(body: SearchIn) -> Hits:
        """The cases nearest to a text."""
        # An absent filter matches everything; None would match nothing.
        filters = {name: value for name, value in body.filters.model_dump().items() if value is not None}
        snapshot = advisor.snapshot()
        hits = await worker.run(lambda: snapshot.search(body.query, body.top_k, filters))
        return Hits.of(hits, snapshot.knowledge.cases, "zh" if body.language == "zh" else "en")

    add_answer_routes(router, advisor, worker)
    add_conversation_routes(router, advisor.memory, worker.run)
    add_tool_routes(router, advisor, worker, bounded)
    add_case_routes(router, advisor)
    add_mechanism_routes(router, advisor)
    add_rule_routes(router, advisor)
    return router


def add_answer_routes(router: APIRouter, advisor: Advisor, worker: Worker) -> None:
    """Answers that were given, and what is said of them."""

    @router.get("/answers/{answer_id}", response_model=Answer)
    async def stored_answer(answer_id: str) -> Response:
        """A stored answer, unchanged; 404 if it is not stored."""
        stored = await worker.run(lambda: advisor.memory.answer(answer_id))
        if stored is None:
            raise NotFound(f"no answer {answer_id!r}")
        # As stored: an answer keeps the form of the version that gave it.
        return Response(json.dumps(stored.answer, ensure_ascii=False), media_type="application/json")

    @router.post("/feedback")
    async def feedback(body: FeedbackIn, request: Request) -> FeedbackReceipt:
        """Say whether an answer helped. A second feedback on the same answer replaces the first.

        403 if another key asked; an administrator may.
        """
        principal = principal_of(request)
        owner = None if principal.may("admin") else principal.id
        value = Feedback(answer_id=body.answer_id, reaction=body.reaction, reason=body.reason, comment=body.comment)
        await worker.run(lambda: advisor.memory.give_feedback(value, owner))
        return FeedbackReceipt(answer_id=body.answer_id, reaction=body.reaction)


def add_tool_routes(
    router: APIRouter, advisor: Advisor, worker: Worker, bounded: Callable[[list[AttachmentIn]], None]
) -> None:
    """Endpoints without a conversation: known defects of packages, two runs compared, messages explained."""

    @router.post("/audit", response_model=AuditView)
    async def audit(body: AuditIn) -> Response:
        """The known defects of an environment's packages, and the versions without them."""
        bounded([*body.attachments, *body.good])
        attachments, good = values(body.attachments), values(body.good)
        return await run(
            lambda: advisor.audit(
                attachments, body.language, good=good, question=body.question, with_possible=body.possible
            )
        )

    @router.post("/diff", response_model=DiffView)
    async def diff(body: DiffIn) -> Response:
        """Differences between a run that works and one that fails, and what each difference does."""
        bounded([*body.good, *body.bad])
        good, bad = values(body.good), values(body.bad)
        return await run(lambda: advisor.diff(good, bad, body.language))

    @router.post("/messages/explain", response_model=MessagesView)
    async def explain(body: ExplainIn) -> Response:
        """Explain error messages and warnings: the code that prints them, under which condition, and what to do."""
        bounded(body.attachments)
        if not body.message.strip() and not body.attachments:
            raise InvalidRequest("message: a message, or attachments")
        attachments = tuple(values(body.attachments))
        return await run(lambda: advisor.explain(body.message, attachments, body.language))

    async def run(call: Callable[[], object]) -> Response:
        return json_response(await worker.run(call))


def values(attachments: list[AttachmentIn]) -> list[Attachment]:
    return [attachment.value() for attachment in attachments]


def add_case_routes(router: APIRouter, advisor: Advisor) -> None:
    """The published cases."""

    @router.get("/cases")
    async def list_cases(
        offset: Offset = 0,
        limit: Limit = 50,
        framework: str | None = None,
        family: str | None = None,
        language: Language = "en",
    ) -> CasePage:
        """Published cases by id."""
        chosen = [
            case
            for case in sorted(advisor.knowledge.case_pages.values(), key=lambda case: case.id)
            if (framework is None or framework in case.frameworks) and (family is None or family == case.family)
        ]
        items = tuple(CaseSummary.of(case, language) for case in chosen[offset : offset + limit])
        return CasePage(items=items, total=len(chosen), offset=offset)

    @router.get("/cases/{case_id}")
    async def get_case(case_id: str, language: Language = "en") -> CaseDocument:
        """One case, mechanism or origin (``mechanism.origin``): its fields, and its page in ``language``."""
        knowledge = advisor.knowledge
        case = knowledge.published.get(case_id)
        if case is None:
            raise NotFound(f"no case {case_id!r}")
        fields = plain(case)
        assert isinstance(fields, dict)
        markdown = render_cause(case, knowledge.mechanisms, language)
        return CaseDocument(case=fields, markdown=markdown)


def add_mechanism_routes(router: APIRouter, advisor: Advisor) -> None:
    """Mechanisms of failing runs, whatever the framework."""

    @router.get("/mechanisms")
    async def list_mechanisms(
        offset: Offset = 0,
        limit: Limit = 50,
        family: str | None = None,
        language: Language = "en",
    ) -> MechanismPage:
        """Mechanisms by id."""
        chosen = [item for item in advisor.knowledge.mechanisms.mechanisms if family is None or family == item.family]
        items = tuple(MechanismSummary.of(item, language) for item in chosen[offset : offset + limit])
        return MechanismPage(items=items, total=len(chosen), offset=offset)

    @router.get("/mechanisms/{mechanism_id}")
    async def get_mechanism(mechanism_id: str, language: Language = "en") -> MechanismDocument:
        """One mechanism: its summary, and its page as Markdown in ``language``."""
        mechanism = advisor.knowledge.mechanisms.get(mechanism_id)
        if mechanism is None:
            raise NotFound(f"no mechanism {mechanism_id!r}")
        return MechanismDocument(
            mechanism=MechanismSummary.of(mechanism, language),
            markdown=render_mechanism(mechanism, None, language),
        )


def add_rule_routes(router: APIRouter, advisor: Advisor) -> None:
    """The rules."""

    @router.get("/rules")
    async def list_rules(
        offset: Offset = 0,
        limit: Limit = 50,
        framework: str | None = None,
        language: Language = "en",
    ) -> RulePage:
        """Rules by id."""
        chosen = [
            rule
            for rule in sorted(advisor.knowledge.rules.rules, key=lambda rule: rule.id)
            if framework is None or framework in rule.applies.get("framework", ())
        ]
        items = tuple(RuleSummary.of(rule, language) for rule in chosen[offset : offset + limit])
        return RulePage(items=items, total=len(chosen), offset=offset)

    @router.get("/rules/{rule_id}")
    async def get_rule(rule_id: str, language: Language = "en") -> RuleDocument:
        """One rule: its condition and its page as Markdown in ``language``."""
        rule = advisor.knowledge.rules.get(rule_id)
        if rule is None:
            raise NotFound(f"no rule {rule_id!r}")
        fields = plain(RuleSummary.of(rule, language))
        assert isinstance(fields, dict)
        return RuleDocument(rule={**fields, "when": rule.when}, markdown=render_rule(rule, language))


def json_response(value: object, status: int = 200) -> Response:
    """A frozen value as JSON, without a second validation."""
    return Response(to_json_once(value), status, media_type="application/json")


def event_stream(texts: AsyncIterator[str]) -> StreamingResponse:
    """Server-sent events that no cache keeps and no proxy collects: nginx would hold the answer back to its end."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(texts, media_type="text/event-stream", headers=headers)


async def events(first: StreamPart, parts: Parts) -> AsyncIterator[str]:
    """Server-sent events: ``answer.draft``, ``answer.delta`` and ``answer.step``, then ``answer`` or ``error``.

    A client that disconnects closes ``parts``, which stops the model.
    """
    async with aclosing(parts):
        try:
            async for part in chained(first, parts):
                if isinstance(part, Answer):
                    yield sse("answer", to_json_once(part))
                elif isinstance(part, StepView):
                    yield sse("answer.step", to_json(part))
                elif isinstance(part, Draft):
                    if not part.decided:
                        yield sse("answer.draft", to_json_once(part.answer))
                elif isinstance(part, Delta):
                    for text in pieces(part.text):
                        yield sse("answer.delta", json.dumps({"text": text}, ensure_ascii=False))
        except TrainmedicError as error:
            yield sse("error", json.dumps({"error": {"code": error.code, "message": error.message}}))


async def chained(first: StreamPart, parts: Parts) -> Parts:
    """``parts`` after the first one, which was awaited already."""
    yield first
    async for part in parts:
        yield part


def pieces(text: str) -> Iterator[str]:
    """A text in pieces of about the size of a model's."""
    for start in range(0, len(text), DELTA_CHARACTERS):
        yield text[start : start + DELTA_CHARACTERS]


def sse(event: str, data: str) -> str:
    """One server-sent event. JSON has no raw line breaks, so one ``data`` line holds it.

    U+0085, U+2028 and U+2029 are escaped as well: many clients take them for line breaks.
    """
    for character in "\x85\u2028\u2029":
        data = data.replace(character, f"\\u{ord(character):04x}")
    return f"event: {event}\ndata: {data}\n\n"
