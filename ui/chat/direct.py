"""Endpoints for the page's script before the framework loads: what the waiting files are, which files of a run's
folder tell of it, and, where no model streams it, the answer to the first question, as a link to it shows it."""

from __future__ import annotations

import uuid
from dataclasses import replace
from functools import partial
from typing import Literal

from pydantic import BaseModel, Field, ValidationError
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from trainmedic.kb.errors import InvalidRequest, NotFound, RateLimited
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse import run_folder
from trainmedic.service.answering import final_answer
from trainmedic.service.dialogue.request import MAX_ATTACHMENTS, Ask
from trainmedic.ui.chat import evidence
from trainmedic.ui.chat.document import linked
from trainmedic.ui.chat.guard import body_of
from trainmedic.ui.chat.mount import Receive, Scope
from trainmedic.ui.chat.sender import Sender
from trainmedic.ui.chat.texts import Language, examples, words
from trainmedic.ui.chat.waiting import recognised
from trainmedic.ui.context import AppContext

DIRECT = "/first/"
MOST_LISTED = 20_000
"""Files of a folder that are chosen from."""


class _File(BaseModel):
    path: str = Field(max_length=4_096)
    size: int
    modified: float


class _Folder(BaseModel):
    files: list[_File] = Field(max_length=MOST_LISTED)


class Direct:
    """The calls of `static/composer.js`. The shell has checked who makes them."""

    def __init__(self, context: AppContext) -> None:
        self._context = context

    async def response(self, scope: Scope, receive: Receive) -> Response:
        """Raises the errors that the API answers with."""
        call = scope["method"], scope["path"].removeprefix(DIRECT)
        if call == ("GET", "folder"):
            return JSONResponse(run_folder.rule())
        if call == ("POST", "folder"):
            return _chosen(await body_of(receive))
        made = {("POST", "files"): self._files, ("POST", "ask"): self._ask}.get(call)
        if made is None:
            raise NotFound("no such call of the pages")
        sender = Sender(self._context, scope)
        async with Request(scope, receive).form(max_files=MAX_ATTACHMENTS, max_fields=2 * MAX_ATTACHMENTS) as form:
            language: Language = "zh" if form.get("language") == "zh" else "en"
            if not await sender.metered("ask on the page" if call[1] == "ask" else "attach on the page"):
                raise RateLimited(words(language)["too_many_questions"])
            html = await made(form, language, sender)
        return HTMLResponse(html, headers={"Cache-Control": "no-store"})

    async def _files(self, form: FormData, language: Language, sender: Sender) -> str:
        """The waiting files as recognised by their beginnings; ``lines`` says how many lines each has."""
        counts, seen = form.getlist("lines"), []
        for index, (name, content) in enumerate(await _sent(form)):
            known = await sender.run(partial(recognised, name, content, self._context.advisor.read))
            count = str(counts[index]) if index < len(counts) else ""
            seen.append(replace(known, index=index, lines=int(count) if count.isdecimal() else None))
        return evidence.chips(seen, language)

    async def _ask(self, form: FormData, language: Language, sender: Sender) -> str:
        await sender.note("ask on the page")
        example = next((each for each in examples(language) if each.id == form.get("example")), None)
        question = example.question if example is not None else str(form.get("question") or "")
        speech: Literal["auto", "en", "zh"] = "auto" if question.strip() else language
        sent = tuple(Attachment(name=name, content=content) for name, content in await _sent(form))
        files = example.files if example is not None else sent
        request = Ask(question=question, attachments=files, language=speech, owner=sender.owner)
        answer = await final_answer(self._context.answerer.stream(request, uuid.uuid4().hex, sender.run))
        return await sender.run(lambda: linked(self._context, language, answer.id, answer))


async def _sent(form: FormData) -> list[tuple[str, bytes]]:
    """The files of a form: name and content."""
    files = [file for file in form.getlist("file") if isinstance(file, UploadFile)]
    return [(file.filename or "", await file.read()) for file in files]


def _chosen(body: bytes) -> Response:
    try:
        listing = _Folder.model_validate_json(body)
    except ValidationError:
        raise InvalidRequest(f"no list of at most {MOST_LISTED} files with path, size and time") from None
    chosen = run_folder.chosen(run_folder.Entry(**file.model_dump()) for file in listing.files)
    first = run_folder.telling_ranks({entry.path: b"" for role, entry in chosen if role.name == "rank"})
    told_by_text = run_folder.rule()["telling"]
    return JSONResponse(
        [
            {"path": entry.path, "role": role.name, "sure": entry.path in first or role.name not in told_by_text}
            for role, entry in chosen
        ]
    )
