"""The question page: its widgets and their events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import gradio as gr

from trainmedic.kb.errors import Forbidden, NotFound, TrainmedicError
from trainmedic.service.dialogue.request import Mode
from trainmedic.service.storage.history import Feedback
from trainmedic.ui.chat import evidence
from trainmedic.ui.chat.answering import AnsweringPage, Changes, chatbot, ready
from trainmedic.ui.chat.audit import READ
from trainmedic.ui.chat.frame import QUIET, header, html_options
from trainmedic.ui.chat.sender import Sender
from trainmedic.ui.chat.session import (
    REASONS,
    Session,
    chat_message,
    restored,
    sources_of,
)
from trainmedic.ui.chat.texts import Language, examples
from trainmedic.ui.chat.uploads import read_uploads
from trainmedic.ui.chat.waiting import WaitingFiles
from trainmedic.ui.context import AppContext
from trainmedic.ui.present.stored import answer_from

# Checked against this list, because the value comes from a script in the browser.
REACTIONS = ("up", "down", "resolved")
LONG_PASTE = 2_000
"""Code points; a longer paste becomes an attachment."""

# The functions of static/widgets.js. The framework wants the names of a widget's own events in its script, in quotes.
AFTER_JS = "tmWidgets.after(element, trigger) /* 'turn' 'vote' 'follow' 'forget' */"
CHIPS_JS = "tmWidgets.chips(element, trigger) /* 'drop' */"
EXAMPLES_JS = "tmWidgets.examples(element, trigger) /* 'example' */"
SETTLED_JS = "() => tmWidgets.settled()"
STOPPED_JS = "() => tmWidgets.stopped()"
ASKED_JS = "(value, session) => tmWidgets.asked(value, session)"
FOLLOWED_JS = "(session) => tmWidgets.followed(session)"


class DiagnosePage(AnsweringPage):
    """The question page in one language."""

    def __init__(self, context: AppContext, language: Language) -> None:
        super().__init__(context, language)
        self._waiting = WaitingFiles(context, language)

    def build(self) -> gr.Blocks:
        t = self._words
        with gr.Blocks(
            title=t["page_title"], fill_width=True, analytics_enabled=False, delete_cache=(600, 3600)
        ) as page:
            gr.HTML(header(self._context, self._language, ""), elem_id="tm-head", **html_options())
            self._session = gr.State(Session())
            with gr.Row(elem_id="main"):
                with gr.Column(elem_id="talk"):
                    self._talk()
                with gr.Column(elem_id="evidence"):
                    self._steps = gr.HTML("", elem_id="tm-ev-steps", **html_options())
                    self._panel = gr.HTML("", elem_id="tm-ev-main", **html_options())
                    self._tail = gr.HTML("", elem_id="tm-ev-tail", **html_options())
            self._events(page)
        page.queue(default_concurrency_limit=None, api_open=False)
        return page

    def _talk(self) -> None:
        t = self._words
        with gr.Column(elem_id="tm-scroll"):
            self._hello = gr.HTML(
                evidence.render("hello.html", self._language), elem_id="tm-hello-box", **html_options()
            )
            self._bot = gr.Chatbot(
                elem_id="bot",
                layout="panel",
                show_label=False,
                label=t["tab_answer"],
                height=None,
                buttons=["copy"],
                latex_delimiters=[],
                feedback_options=None,
                autoscroll=False,
                sanitize_html=True,
                line_breaks=False,
                allow_tags=False,
                placeholder="",
                visible="hidden",
            )
            self._after = gr.HTML("", elem_id="tm-after-box", **html_options(AFTER_JS))
        with gr.Column(elem_id="tm-foot"):
            self._notice = gr.HTML("", elem_id="tm-notice-box", **html_options())
            self._chips = gr.HTML("", elem_id="tm-chips-box", **html_options(CHIPS_JS))
            self._box = gr.MultimodalTextbox(
                elem_id="tm-question",
                show_label=False,
                label=t["ask_label"],
                placeholder=t["placeholder"],
                file_count="multiple",
                lines=1,
                max_lines=12,
                max_plain_text_length=LONG_PASTE,
                submit_btn=True,
                stop_btn=False,
                html_attributes=gr.InputHTMLAttributes(spellcheck=False, autocorrect="off", autocapitalize="off"),
                autofocus=True,
            )
        start = evidence.render(
            "examples.html",
            self._language,
            examples=examples(self._language),
            model=bool(self._context.settings.model.base_url),
        )
        self._examples = gr.HTML(start, elem_id="tm-examples-box", **html_options(EXAMPLES_JS))

    def _events(self, page: gr.Blocks) -> None:
        answer = [
            self._bot,
            self._panel,
            self._steps,
            self._tail,
            self._after,
            self._chips,
            self._hello,
            self._examples,
            self._notice,
        ]
        outputs = [*answer, self._box, self._session]
        state, on_page = self._session, gr.Textbox(visible=False)
        submission = self._box.submit(self.submitted, [self._box, state, on_page], outputs, js=ASKED_JS, **QUIET)
        submission.then(None, js=SETTLED_JS, **QUIET)
        follow_up = self._after.follow(self.followed, [state, on_page], outputs, js=FOLLOWED_JS, **QUIET)
        follow_up.then(None, js=SETTLED_JS, **QUIET)
        example = self._examples.example(self.tried, [state], outputs, **QUIET)
        example.then(None, js=SETTLED_JS, **QUIET)
        stop = self._box.stop(self.stopped, [state], outputs, cancels=[submission, follow_up, example], **QUIET)
        # Once more: a part that was being sent when the answer was stopped may arrive after the word that it was.
        stop = stop.then(self._shown, [state], [self._bot], **QUIET)
        stop.then(None, js=STOPPED_JS, **QUIET)
        evidence_parts = [self._panel, self._steps, self._tail]
        self._after.turn(self.looked_back, [state, on_page], evidence_parts, js=FOLLOWED_JS, **QUIET)
        self._box.change(self.received, [self._box, state], [self._chips], trigger_mode="always_last", **QUIET)
        drop = self._chips.drop(self.dropped, [self._box, state], [self._box, self._chips], **QUIET)
        # Once more: a change that was sent with the file still there may be answered after its removal.
        drop.then(self.received, [self._box, state], [self._chips], **QUIET)
        deletion = self._after.forget(self.forgotten, [state], outputs, **QUIET)
        deletion.then(None, js=SETTLED_JS, **QUIET)
        self._after.vote(self.voted, [state, on_page], [self._after, self._notice], js=FOLLOWED_JS, **QUIET)
        page.load(self.opened, [state], outputs, **QUIET).then(None, js=SETTLED_JS, **QUIET)

    async def submitted(
        self,
        value: Mapping[str, Any] | None,
        session: Session,
        on_page: str | None = None,
        request: gr.Request | None = None,
    ) -> AsyncIterator[Changes]:
        """Ask the typed text with its files. ``on_page`` is the id of the answer on the page."""
        text, paths = str((value or {}).get("text") or ""), [str(path) for path in (value or {}).get("files") or ()]
        sender = self._sender(request)
        refusal = await self._counted(session, sender) or await self._waiting.refusal(text, paths, sender)
        if refusal:
            yield self._noticed(refusal)
            return
        files = await sender.run(lambda: read_uploads(paths))
        await self._resumed(session, on_page, sender)
        async for changes in self._asked(text, files, session, clear=True):
            yield changes
        if len(files) < len(paths):
            yield self._noticed(self._words["files_gone"].format(count=len(paths) - len(files)))

    def _sender(self, request: gr.Request | None) -> Sender:
        inner = request.request if request is not None else None
        return Sender(self._context, inner.scope if inner is not None else {})

    async def _counted(self, session: Session, sender: Sender) -> str:
        """Note who asks; returns why they may not ask now, empty if they may."""
        session.owner, session.client = sender.owner, sender.client
        if not await sender.metered("ask on the page"):
            return str(self._words["too_many_questions"])
        await sender.note("ask on the page")
        return ""

    def _noticed(self, text: str) -> Changes:
        return {self._notice: evidence.render("notice.html", self._language, text=text)}

    async def followed(
        self, session: Session, on_page: str | None, event: gr.EventData, request: gr.Request | None = None
    ) -> AsyncIterator[Changes]:
        """Ask a follow-up question offered under the answer."""
        sender = self._sender(request)
        if refusal := await self._counted(session, sender):
            yield self._noticed(refusal)
            return
        await self._resumed(session, on_page, sender)
        follow_up = next((item for item in session.follow if item.id == event.id and item.fill is None), None)
        if follow_up is not None:
            mode: Mode = "investigate" if follow_up.investigate else "auto"
            async for changes in self._asked(follow_up.question, follow_up.files, session, mode):
                yield changes

    async def tried(
        self, session: Session, event: gr.EventData, request: gr.Request | None = None
    ) -> AsyncIterator[Changes]:
        """Ask one of the examples."""
        if refusal := await self._counted(session, self._sender(request)):
            yield self._noticed(refusal)
            return
        example = next((item for item in examples(self._language) if item.id == event.id), None)
        if example is not None:
            async for changes in self._asked(example.question, example.files, session):
                yield changes

    def stopped(self, session: Session) -> Changes:
        """Stop the answer: the text so far stays, the input opens again."""
        session.stopped = True
        if session.messages and session.messages[-1]["role"] == "assistant":
            text = session.messages[-1]["content"]
            text = "" if text.startswith(self._words["analysing"]) else f"{text}\n\n"
            word = "stopped_evidence" if session.has_evidence else "stopped"
            session.messages[-1] = chat_message("assistant", f"{text}{self._words[word]}")
        return {self._bot: chatbot(session), self._box: ready(), self._session: session}

    def _shown(self, session: Session) -> Changes:
        return {self._bot: chatbot(session)}

    async def received(
        self, value: Mapping[str, Any] | None, session: Session, request: gr.Request | None = None
    ) -> Any:
        """Draw the waiting files."""
        paths = [str(path) for path in (value or {}).get("files") or ()]
        chips = await self._waiting.chips(paths, session, self._sender(request))
        return gr.skip() if chips is None else chips

    async def dropped(
        self,
        value: Mapping[str, Any] | None,
        session: Session,
        event: gr.EventData,
        request: gr.Request | None = None,
    ) -> Changes:
        """Remove one waiting file. A change made by code fires no change event, so the chips are drawn here."""
        files = [str(path) for path in (value or {}).get("files") or ()]
        if isinstance(event.index, int) and 0 <= event.index < len(files):
            await self._sender(request).run(lambda: read_uploads([files.pop(event.index)]))
        message = {"text": (value or {}).get("text") or "", "files": files}
        return {self._box: message, self._chips: await self.received(message, session, request)}

    async def voted(
        self, session: Session, on_page: str | None, event: gr.EventData, request: gr.Request | None = None
    ) -> Changes:
        """Store a reaction to an answer, and ask for the reason after "did not help"; ``change`` offers all again."""
        reaction, reason, answer_id = str(event.reaction), str(event.reason), str(event.answer)
        sender = self._sender(request)
        await self._resumed(session, on_page, sender)
        if reaction == "change":
            return {self._after: self._under(answer_id, session, None)}
        if reaction not in REACTIONS or (reason and reason not in REASONS):
            return {self._notice: ""}
        feedback = Feedback(answer_id=answer_id, reaction=reaction, reason=reason)
        memory = self._context.memory
        try:
            await sender.change(lambda owner: memory.give_feedback(feedback, owner))
        except Forbidden:
            return self._noticed(self._words["vote_not_yours"])
        except TrainmedicError as error:
            return self._noticed(error.message)
        await sender.note("feedback on the page", answer_id)
        return {self._after: self._under(answer_id, session, feedback)}

    async def forgotten(self, session: Session, event: gr.EventData, request: gr.Request | None = None) -> Changes:
        """Delete the conversation of an answer, if it is the reader's."""
        memory, sender = self._context.memory, self._sender(request)
        stored = await sender.run(lambda: memory.answer(str(event.answer)[:64]))
        if stored is None:
            return self._noticed(self._words["delete_gone"])
        conversation = str(stored.answer["conversation_id"])
        try:
            await sender.change(lambda owner: memory.delete_conversation(conversation, owner))
        except NotFound:
            return self._noticed(self._words["delete_not_yours"])
        await sender.note("delete on the page", conversation)
        fresh = Session(owner=sender.owner, messages=[chat_message("assistant", self._words["deleted"])])
        empty = dict.fromkeys((self._panel, self._steps, self._tail, self._after, self._notice), "")
        return {**empty, self._bot: chatbot(fresh), self._session: fresh}

    async def looked_back(
        self, session: Session, on_page: str | None, event: gr.EventData, request: gr.Request | None = None
    ) -> Any:
        """The evidence of an earlier answer on the page, whose citations refer to it."""
        sender = self._sender(request)
        await self._resumed(session, on_page, sender)
        known = isinstance(event.index, int) and 0 <= event.index < len(session.answers)
        answer_id = session.answers[event.index] if known else ""
        memory = self._context.memory
        stored = await sender.run(lambda: memory.answer(answer_id)) if answer_id else None
        if stored is None:
            return {self._panel: gr.skip()}
        return self._evidence(answer_from(stored.answer), sources_of(stored.turns))

    async def opened(self, session: Session, request: gr.Request) -> Changes:
        """Restore a linked answer from the history, or fill in a linked question."""
        query = request.query_params
        if "answer" in query:
            return await self._recalled(str(query["answer"])[:64], session, self._sender(request))
        if "q" in query:
            return {self._box: {"text": str(query["q"])[:LONG_PASTE], "files": []}}
        return {self._box: gr.skip()}

    async def _recalled(self, answer_id: str, session: Session, sender: Sender) -> Changes:
        hidden = {self._hello: gr.HTML(visible=False), self._examples: gr.HTML(visible=False), self._session: session}
        stored = await restored(self._context, sender.run, answer_id, session, self._language)
        if stored is None:
            session.messages = [chat_message("assistant", self._words["link_gone"])]
            return {**hidden, self._bot: chatbot(session)}
        await sender.note(READ, answer_id)
        return {
            **hidden,
            **self._evidence(stored.answer, stored.sources),
            self._bot: chatbot(session),
            self._after: self._next(
                stored.answer,
                stored.sources,
                session,
                await self._vote(answer_id, sender),
            ),
        }

    async def _vote(self, answer_id: str, sender: Sender) -> Feedback | None:
        history = self._context.memory.history
        return await sender.run(lambda: history.feedback(answer_id)) if history is not None else None

    async def _resumed(self, session: Session, on_page: str | None, sender: Sender) -> None:
        """Restore the conversation on the page if the server has lost its session, as after a restart."""
        if session.conversation is None and on_page:
            stored = await restored(self._context, sender.run, on_page[:64], session, self._language)
            if stored is not None:
                await sender.note(READ, on_page[:64])
                self._next(stored.answer, stored.sources, session)
