"""How an answer comes onto the question page: the question, its evidence, the text as it arrives, and the rest."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Literal, TypeAlias

import gradio as gr

from trainmedic.kb.errors import TrainmedicError
from trainmedic.kb.mask import mask
from trainmedic.kb.model.place import Attachment, Source
from trainmedic.kb.trace import trace_of
from trainmedic.service.access.slots import for_client
from trainmedic.service.answer.schema import Answer, StepView
from trainmedic.service.answering import Draft, Stage
from trainmedic.service.dialogue.request import Ask, Mode, safely_named
from trainmedic.service.storage.history import Feedback
from trainmedic.ui.chat import evidence, markdown
from trainmedic.ui.chat.document import answer_title
from trainmedic.ui.chat.session import Session, chat_message, offered, says_something, under
from trainmedic.ui.chat.sources import tail
from trainmedic.ui.chat.texts import Language, words
from trainmedic.ui.chat.uploads import lines_of
from trainmedic.ui.context import AppContext

log = logging.getLogger("trainmedic.chat")
EVERY_S = 0.05
"""Pause between two updates of the text: each one carries the whole conversation."""
Changes: TypeAlias = dict[Any, Any]


class AnsweringPage:
    """The events of the page for a question. Its widgets are made by `DiagnosePage`."""

    _bot: gr.Chatbot
    _box: gr.MultimodalTextbox
    _session: gr.State
    _hello: gr.HTML
    _examples: gr.HTML
    _panel: gr.HTML
    _steps: gr.HTML
    _tail: gr.HTML
    _after: gr.HTML
    _notice: gr.HTML
    _chips: gr.HTML

    def __init__(self, context: AppContext, language: Language) -> None:
        self._context = context
        self._language = language
        self._words = words(language)

    async def _asked(
        self,
        question: str,
        files: Sequence[Attachment],
        session: Session,
        mode: Mode = "auto",
        *,
        clear: bool = False,
    ) -> AsyncIterator[Changes]:
        """The updates while one question is answered; the last one repeats all of them.

        ``clear``: the question was written into the input, which is emptied; a draft that is in it otherwise stays.

        A slow browser draws only the newest of several waiting updates, and an update leaves out unchanged parts:
        without the last one such a page would keep an older text or lack its evidence.
        """
        total: Changes = {}
        async for changes in self._changes(question, files, session, mode, emptied(clear)):
            total |= changes
            yield changes
        yield total | {self._box: ready(clear), self._session: session}

    async def _changes(
        self, question: str, files: Sequence[Attachment], session: Session, mode: Mode, value: Mapping[str, None]
    ) -> AsyncIterator[Changes]:
        """The user's message at once, the evidence before the text, the text as it arrives, then the rest."""
        trace_id = uuid.uuid4().hex
        names = [(file.name, lines_of(file.content)) for file in safely_named(files)]
        session.messages.append(chat_message("user", markdown.question(mask(question).text, names, self._language)))
        session.messages.append(chat_message("assistant", self._words["analysing"]))
        previous, session.has_evidence, session.stopped, session.own = session.answer_id, False, False, ""
        session.answers.append("")
        yield {
            self._bot: chatbot(session),
            self._hello: gr.HTML(visible=False),
            self._examples: gr.HTML(visible=False),
            self._after: "",
            self._notice: "",
            **({self._chips: ""} if value else {}),
            # Closed until the answer is there: two questions at once would mix up in one conversation.
            self._box: gr.MultimodalTextbox(**value, interactive=False, submit_btn=False, stop_btn=True),
            self._session: session,
        }
        if previous:  # someone may have asked on from the same answer, in another tab or through its link
            run = for_client(session.client, self._context.executor)
            branch = await run(lambda: self._context.memory.branch(previous, session.owner))
            session.conversation = branch or session.conversation
        request = Ask(
            question=question,
            attachments=tuple(files),
            conversation_id=session.conversation,
            language=self._language_of(question, session),
            mode=mode,
            owner=session.owner,
        )
        try:
            async for changes in self._streamed(request, session, trace_id):
                yield changes
        except TrainmedicError as error:
            yield self._failed(session, error.message, error.hint, trace_id)
        except Exception as error:
            log.error("trace %s\n%s", trace_id, trace_of(error))
            yield self._failed(session, self._words["failed_unexpected"], None, trace_id)

    def _language_of(self, question: str, session: Session) -> Literal["auto", "en", "zh"]:
        """The language to answer in; files without a word are answered in the page's."""
        return "auto" if question.strip() or session.conversation is not None else self._language

    async def _streamed(self, request: Ask, session: Session, trace_id: str) -> AsyncIterator[Changes]:
        text, steps, stages, last = "", list[StepView](), list[Stage](), 0.0
        draft: Answer | None = None
        sources: tuple[Source, ...] = ()
        run = for_client(session.client, self._context.executor)
        async with aclosing(self._context.answerer.stream(request, trace_id, run)) as parts:
            async for part in parts:
                if session.stopped:
                    return
                if isinstance(part, Draft):
                    draft, sources = part.answer, part.sources
                    session.conversation, session.has_evidence = part.answer.conversation_id, True
                    session.own = "" if part.decided else markdown.answer(draft, self._language)
                    yield self._evidence(draft, sources) | self._working(draft, stages, steps, session)
                elif isinstance(part, Stage):
                    stages.append(part)
                    yield self._working(draft, stages, steps, session)
                elif isinstance(part, StepView):
                    steps.append(part)
                    changes = self._working(draft, stages, steps, session)
                    yield changes | {self._steps: evidence.steps(steps, self._language)}
                elif isinstance(part, Answer):
                    yield self._settled(part, draft, sources, session)
                elif draft is not None and part.kind != "receipt":  # the page shows it in its own place
                    text += part.text
                    if time.monotonic() - last >= EVERY_S:
                        last = time.monotonic()
                        session.messages[-1] = chat_message("assistant", markdown.streamed(draft, text, self._language))
                        yield {self._bot: chatbot(session)}

    def _working(
        self, draft: Answer | None, stages: Sequence[Stage], steps: Sequence[StepView], session: Session
    ) -> Changes:
        """The diagnosis under way, in the place of its answer; nothing where no model diagnoses."""
        if draft is None or not session.own:
            return {}
        session.messages[-1] = chat_message("assistant", markdown.working(draft, stages, steps, self._language))
        return {self._bot: chatbot(session), self._session: session}

    def _evidence(self, answer: Answer, sources: Sequence[Source]) -> Changes:
        texts = {source.name: source.text for source in sources}
        rules = self._context.advisor.knowledge.rules
        return {
            self._panel: evidence.panel(answer, texts, self._language, rules),
            self._steps: evidence.steps(answer.steps, self._language),
            self._tail: tail(answer, texts, self._language, rules),
        }

    def _settled(self, answer: Answer, draft: Answer | None, sources: Sequence[Source], session: Session) -> Changes:
        """The final text, its cited sources, and the follow-up questions."""
        session.own = ""
        session.messages[-1] = chat_message("assistant", markdown.answer(answer, self._language))
        session.answers[-1] = answer.id
        changes: Changes = {self._bot: chatbot(session), self._after: self._next(answer, sources, session)}
        # Redrawn only if it changed: redrawing closes the sections that the reader has opened.
        if draft is not None and (answer.verdict, answer.causes) != (draft.verdict, draft.causes):
            changes |= self._evidence(answer, sources)
        if draft is None or answer.citations != draft.citations or answer.mode != draft.mode:
            changes[self._tail] = self._evidence(answer, sources)[self._tail]
        if answer.steps:
            changes[self._steps] = evidence.steps(answer.steps, self._language)
        return changes

    def _next(
        self,
        answer: Answer,
        sources: Sequence[Source],
        session: Session,
        vote: Feedback | None = None,
    ) -> str:
        session.language = evidence.spoken(answer, self._language)
        session.title = answer_title(answer, self._language)
        session.feedback = says_something(answer)
        session.follow = offered(self._context, answer, sources, self._language)
        return self._under(answer.id, session, vote)

    def _under(self, answer_id: str, session: Session, vote: Feedback | None) -> str:
        return under(
            self._context,
            answer_id,
            session.conversation or "",
            session.language,
            session.title,
            session.follow,
            vote,
            feedback=session.feedback,
        )

    def _failed(self, session: Session, message: str, hint: str | None, trace_id: str) -> Changes:
        t = self._words
        lines = [t["failed"].format(message=markdown.verbatim(message))]
        lines += [t["failed_hint"].format(hint=markdown.verbatim(hint))] if hint else []
        lines.append(t["failed_trace"].format(trace=trace_id))
        session.messages[-1] = chat_message("assistant", "\n\n".join(lines))
        return {self._bot: chatbot(session)}


def chatbot(session: Session) -> Any:
    return gr.Chatbot(value=[dict(message) for message in session.messages], visible=True)


def emptied(clear: bool) -> dict[str, None]:
    """Update that empties the input, or leaves it as it is."""
    return {"value": None} if clear else {}


def ready(clear: bool = False) -> Any:
    return gr.MultimodalTextbox(**emptied(clear), interactive=True, submit_btn=True, stop_btn=False)
