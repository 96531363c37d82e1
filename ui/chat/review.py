"""The curator's pages: the queue of drafts, one draft, and the questions that nothing explains. Plain forms, no script.

They do what ``trainmedic review`` does, through the same desk. Whoever gets here is an administrator (`Shell`).
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from threading import Lock
from urllib.parse import parse_qs

from markupsafe import Markup
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route

from trainmedic.ingest.drafts.store import digest_of
from trainmedic.ingest.review.desk import Desk, Entry
from trainmedic.ingest.review.page_text import case_of, published_text
from trainmedic.ingest.review.questions import draft_of_questions
from trainmedic.kb.errors import InvalidRequest, NotFound, TrainmedicError
from trainmedic.kb.model.case import Case
from trainmedic.kb.pages.page import PageError
from trainmedic.service.storage.curation import UnresolvedView
from trainmedic.ui.chat.audit import note
from trainmedic.ui.chat.evidence import render
from trainmedic.ui.chat.frame import header
from trainmedic.ui.chat.markdown import page_html
from trainmedic.ui.chat.texts import LANGUAGES, Language, path_of, words
from trainmedic.ui.context import AppContext
from trainmedic.ui.desk import desk_over, drafts_folder

PAGE = "review"
LONGEST_FORM = 1024 * 1024
"""Bytes of a form: a page with everything that a write-up holds."""
SHOWN = 20
"""Drafts on one page of the queue, and questions below it."""
ACTIONS = ("edit", "approve", "reject", "merge", "publish")
SECTIONS = ("symptom", "cause", "fix", "confirm")
STATUS = {"invalid": 400, "not_found": 404, "too_large": 413}


class ReviewPages:
    """What is served below ``/review`` and ``/zh/review``. ``address`` gives the addresses of our files by name."""

    def __init__(self, context: AppContext, address: Callable[[str], str]) -> None:
        self._context = context
        self._address = address
        # Another site can neither read it nor guess it, so a form that has it was sent from our page.
        self._token = secrets.token_urlsafe(24)
        self._lock = Lock()
        self.app = Starlette(
            routes=[
                Mount(path_of(language, PAGE).rstrip("/"), routes=self._routes(language))
                for language in reversed(LANGUAGES)
            ]
        )

    def _routes(self, language: Language) -> list[Route]:
        async def queue(request: Request) -> Response:
            if request.method == "POST":
                response = await self._posted(request, language, self._start)
                note(request.scope, "review draft", response.headers.get("location", "").rpartition("/")[2])
                return response
            return await run_in_threadpool(self._queue, language, request.query_params.get("from", ""))

        async def entry(request: Request) -> Response:
            return await run_in_threadpool(self._entry, language, request.path_params["draft"])

        async def act(request: Request) -> Response:
            draft, action = request.path_params["draft"], request.path_params["action"]
            note(request.scope, f"review {action}" if action in ACTIONS else "review", draft)
            return await self._posted(request, language, self._act)

        return [
            Route("/", queue, methods=["GET", "POST"]),
            Route("/{draft}", entry),
            Route("/{draft}/{action}", act, methods=["POST"]),
        ]

    def _desk(self) -> Desk:
        return desk_over(self._context.settings, self._context.advisor.knowledge.cases)

    def _unresolved(self) -> tuple[UnresolvedView, ...]:
        advisor = self._context.advisor
        return self._context.memory.unresolved(advisor.knowledge.embedder.vectors, advisor.nearest)

    def _queue(self, language: Language, start: str, problem: str = "", status: int = 200) -> Response:
        desk = self._desk()
        queue = desk.queue()
        first = int(start) if start.isascii() and start.isdigit() and len(start) < 7 else 0
        shown = queue[first : first + SHOWN]
        duplicates = desk.duplicates([item.id for item in shown])
        questions = self._unresolved()
        return self._page(
            "review/queue.html",
            language,
            status,
            queue=shown,
            total=len(queue),
            duplicates=duplicates,
            before=max(0, first - SHOWN) if first else None,
            after=first + SHOWN if first + SHOWN < len(queue) else None,
            questions=questions[:SHOWN],
            problem=problem,
        )

    def _entry(self, language: Language, draft_id: str, problem: str = "", status: int = 200) -> Response:
        desk = self._desk()
        try:
            entry = desk.entry(draft_id)
        except NotFound as error:
            return self._queue(language, "", error.message, 404)
        case = _preview(entry)
        return self._page(
            "review/entry.html",
            language,
            status,
            entry=entry,
            case=case,
            sections=_sections(case, language),
            digest=digest_of(entry.page),
            targets=_targets(entry),
            problem=problem,
        )

    def _page(self, template: str, language: Language, status: int, **values: object) -> Response:
        page = render(
            "document.html",
            language,
            title=words(language)["review_page_title"],
            description="",
            url="",
            css=self._address("ui.css"),
            icon=self._address("icon.svg"),
            script=self._address("ui.js"),
            header=Markup(header(self._context, language, PAGE)),
            body=Markup(render(template, language, token=self._token, **values)),
        )
        return HTMLResponse(page, status_code=status, headers={"Cache-Control": "no-store"})

    async def _posted(
        self,
        request: Request,
        language: Language,
        answer: Callable[[Language, Mapping[str, str], Mapping[str, str]], Response],
    ) -> Response:
        fields = await _form(request)
        if fields is None:
            return self._page("review/refused.html", language, 413, problem=words(language)["review_too_large"])
        if not hmac.compare_digest(fields.get("token", "").encode(), self._token.encode()):
            return self._page("review/refused.html", language, 403, problem=words(language)["review_refused"])
        return await run_in_threadpool(answer, language, request.path_params, fields)

    def _start(self, language: Language, _: Mapping[str, str], fields: Mapping[str, str]) -> Response:
        answer_id = fields.get("answer", "")
        view = next((view for view in self._unresolved() if answer_id in view.answers), None)
        try:
            if view is None:
                raise NotFound(f"no unresolved question {answer_id!r}")
            folder = drafts_folder(self._context.settings)
            with self._lock:
                draft = draft_of_questions(folder, answer_id, view.questions, view.comments, view.nearest)
        except TrainmedicError as error:
            return self._queue(language, "", error.message, STATUS.get(error.kind, 500))
        return _see(language, draft.id)

    def _act(self, language: Language, path: Mapping[str, str], fields: Mapping[str, str]) -> Response:
        draft_id, action = path["draft"], path["action"]
        try:
            with self._lock:
                draft_id, problem = self._done(draft_id, action, fields)
        except TrainmedicError as error:
            message = f"{error.message} ({error.hint})" if error.hint else error.message
            return self._entry(language, draft_id, message, STATUS.get(error.kind, 500))
        return self._entry(language, draft_id, problem) if problem else _see(language, draft_id)

    def _done(self, draft_id: str, action: str, fields: Mapping[str, str]) -> tuple[str, str]:
        """The draft's id, and what went wrong although the action was done."""
        desk, now = self._desk(), datetime.now(UTC)
        entry = desk.entry(draft_id)
        draft_id = entry.draft.id
        # What is decided is decided about the page that the curator read.
        if fields.get("page") != digest_of(entry.page):
            raise InvalidRequest("the page was changed meanwhile: this is how it is now")
        if action == "edit":
            desk.edit(draft_id, fields.get("text", ""), now)
        elif action == "approve":
            desk.approve(draft_id, now)
        elif action == "reject":
            desk.reject(draft_id, fields.get("reason", ""), now)
        elif action == "merge":
            return draft_id, desk.merge(draft_id, fields.get("case", "").strip(), now).problem
        elif action == "publish":
            return draft_id, desk.publish(draft_id, now).problem
        else:
            raise NotFound(f"no action {action!r}")
        return draft_id, ""


async def _form(request: Request) -> Mapping[str, str] | None:
    """The fields of a form; None if it is too large, nothing if it is none of ours."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > LONGEST_FORM:
            return None
    try:
        fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=8)
    except ValueError:
        return {}
    return {name: values[0] for name, values in fields.items()}


def _see(language: Language, draft_id: str) -> Response:
    # 303, so that a reload of the page does not repeat the action.
    return RedirectResponse(f"{path_of(language, PAGE)}{draft_id}", status_code=303)


def _preview(entry: Entry) -> Case | None:
    """The case as it would be published; None if the page cannot be read."""
    try:
        return case_of(published_text(entry.page, datetime.now(UTC).date()))[0]
    except PageError:
        return None


def _sections(case: Case | None, language: Language) -> list[tuple[str, Markup]]:
    if case is None:
        return []
    texts = ((name, case.section(name, language)) for name in SECTIONS)
    return [(name, page_html(text)) for name, text in texts if text]


def _targets(entry: Entry) -> tuple[str, ...]:
    """Cases that the draft may be merged into, the likeliest first."""
    alike = (duplicate.id for duplicate in entry.duplicates if duplicate.of == "case")
    return tuple(dict.fromkeys((*alike, *entry.draft.related)))
