"""Answers questions from Slack: gathers the evidence, streams the answer, posts it where it belongs."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from cachetools import LRUCache

from trainmedic.kb.errors import NotFound, TrainmedicError
from trainmedic.kb.mask import mask
from trainmedic.kb.model.place import Attachment, Source
from trainmedic.kb.trace import trace_of
from trainmedic.service.answer import Answer, AuditView, StepView
from trainmedic.service.answering import Delta, Draft
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.dialogue.turn import Turn
from trainmedic.service.settings import SlackChannel
from trainmedic.ui.bots.question import prose_language, wants_audit
from trainmedic.ui.bots.tasks import Tasks
from trainmedic.ui.context import AppContext
from trainmedic.ui.present.slack import GROUNDED, Block, Extras, Reply, render_answer, section, verdict_name
from trainmedic.ui.present.slack_audit import known_defects, render_audit
from trainmedic.ui.present.slack_text import escape
from trainmedic.ui.present.stored import answer_from
from trainmedic.ui.slack.calls import Calls, SlackLost, SlackRefused
from trainmedic.ui.slack.gather import Gatherer, Place, ThreadContext
from trainmedic.ui.slack.incoming import IncomingMessage
from trainmedic.ui.slack.live import LiveAnswer, StreamLimits
from trainmedic.ui.slack.memory import ANSWERS, THREADS, PostedAnswer
from trainmedic.ui.slack.messages import messages
from trainmedic.ui.slack.post import RESPONSE_USES, Poster
from trainmedic.ui.slack.scopes import Identity

log = logging.getLogger("trainmedic.slack")
NOT_A_MEMBER = frozenset({"not_in_channel", "channel_not_found"})
"""Slack's errors if the bot was not invited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    context: AppContext
    calls: Calls
    poster: Poster
    gatherer: Gatherer
    streams: StreamLimits
    identity: Identity
    key: str


class QuestionHandler:
    """Answers questions and remembers the answers. Belongs to one event loop."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.posted: LRUCache[str, PostedAnswer] = LRUCache(ANSWERS)
        self._awaited: LRUCache[tuple[str, str], str] = LRUCache(THREADS)
        self._lives: dict[tuple[str, str], tuple[LiveAnswer, asyncio.Task[Any]]] = {}
        self.tasks = Tasks()

    def options(self, channel: str) -> SlackChannel:
        channels = self.workspace.context.settings.slack_channels
        return channels.get(channel) or channels.get("*") or SlackChannel()

    def language(self, channel: str, text: str) -> str:
        """The language of the bot's own messages."""
        chosen = self.options(channel).language
        return prose_language(text) if chosen == "auto" else chosen

    def awaits(self, channel: str, thread_ts: str, user: str) -> bool:
        """Whether we asked this person back in this thread, so that a reply without a mention is meant for us."""
        return self._awaited.get((channel, thread_ts)) == user

    async def stop(self, channel: str, thread_ts: str) -> None:
        """Stop an answer: the reader pressed Slack's Stop button."""
        live, task = self._lives.get((channel, thread_ts), (None, None))
        # The flag first: cancellation arrives at the next await, and until then nothing may be sent.
        if live is not None and task is not None:
            live.stopped.set()
            task.cancel()
        try:
            await self.workspace.calls(
                "agents_sessions_setStatus", channel_id=channel, thread_ts=thread_ts, status="active"
            )
        except (SlackRefused, SlackLost) as error:
            log.warning("the session's status could not be set: %s", error)

    async def in_thread(
        self, place: Place, message: IncomingMessage, *, in_thread: bool, addressed: bool = True, url: str = ""
    ) -> None:
        """Answer a message in its thread. If it is not ``addressed`` to us, we may stay silent.

        ``url`` is a response_url to fall back on if the thread cannot be written to.
        """
        language = self.language(place.channel, message.text)
        trace_id = uuid.uuid4().hex
        try:
            turns = await self.turns(place)
            thread = await self.workspace.gatherer.around(place, message, turns, in_thread=in_thread)
            if thread.empty:
                if addressed:
                    await self.say(place, messages("help", language), url=url)
                return
            executor, read = self.workspace.context.executor, self.workspace.context.advisor.read
            if await executor(lambda: wants_audit(thread.question, thread.attachments, read)):
                await self._audited(place, thread, in_thread=in_thread, addressed=addressed, url=url)
                return
            await self._answered(place, thread, trace_id, in_thread=in_thread, addressed=addressed, url=url)
        except Exception as error:
            await self.failed(place, error, language, trace_id, url=url, addressed=addressed)

    async def turns(self, place: Place) -> tuple[Turn, ...]:
        context, conversation = self.workspace.context, place.conversation_id(self.workspace.key)
        return await context.executor(lambda: context.memory.turns(conversation))

    async def alone(self, question: str, place: Place, url: str) -> None:
        """Answer a command, visible to the asker alone, with a button to share it."""
        language = self.language(place.channel, question)
        trace_id = uuid.uuid4().hex
        try:
            read = self.workspace.context.advisor.read
            if await self.workspace.context.executor(lambda: wants_audit(question, (), read)):
                view = await self._audit(question, (), language)
                await self._tell(place, render_audit(view, language), url)
                return
            request = Ask(question=question, language="zh" if language == "zh" else "en")
            async with aclosing(
                self.workspace.context.answerer.stream(request, trace_id, self.workspace.context.executor)
            ) as parts:
                sources: tuple[Source, ...] = ()
                async for part in parts:
                    if isinstance(part, Draft):
                        sources = part.sources
                    elif isinstance(part, Answer):
                        answer = self._keep(part, sources)
            beside = tuple(known_defects(answer.defects, (), answer.language))
            await self._tell(place, render_answer(answer, self.extras(place, beside=beside, share=True)), url)
        except Exception as error:
            await self.failed(place, error, language, trace_id, url=url, alone=True)

    async def _tell(self, place: Place, replies: Sequence[Reply], url: str) -> None:
        """To the asker alone. A response_url accepts five messages in all; one use is left for the button."""
        for number, reply in enumerate(replies):
            if number >= RESPONSE_USES - 1 or not await self.workspace.poster.respond(url, reply):
                await self.workspace.poster.whisper(place.channel, place.user, [reply])

    async def _audit(self, question: str, attachments: Sequence[Attachment], language: str) -> AuditView:
        advisor = self.workspace.context.advisor
        return await self.workspace.context.executor(lambda: advisor.audit(attachments, language, question=question))

    async def _audited(
        self, place: Place, thread: ThreadContext, *, in_thread: bool, addressed: bool, url: str
    ) -> None:
        options = self.options(place.channel)
        language = options.language if options.language != "auto" else prose_language(thread.question)
        attachments = thread.attachments[: self.workspace.context.settings.max_attachments]
        view = await self._audit(thread.question, attachments, language)
        if not view.defects and (options.quiet or not addressed):
            return
        replies = list(render_audit(view, language))
        if options.ephemeral:
            await self._whisper(place, replies, in_thread=in_thread)
            return
        try:
            await self.workspace.poster.post(place.channel, place.thread_ts, replies)
        except SlackRefused as refused:
            if not url or refused.error not in NOT_A_MEMBER:
                raise
            await self._tell(place, replies, url)

    async def _answered(
        self, place: Place, thread: ThreadContext, trace_id: str, *, in_thread: bool, addressed: bool, url: str
    ) -> None:
        context, options = self.workspace.context, self.options(place.channel)
        attachments = thread.attachments[: context.settings.max_attachments]
        surplus = thread.attachments[context.settings.max_attachments :]
        request = Ask(
            question=thread.question,
            attachments=attachments,
            conversation_id=place.conversation_id(self.workspace.key),
            language=thread.language if options.language == "auto" else options.language,
        )
        why = messages("not_read.many", prose_language(thread.question), limit=len(attachments))
        live = LiveAnswer(
            self.workspace.poster, self.workspace.streams, place, live_text=context.settings.slack_live_text
        )
        task = asyncio.current_task()
        assert task is not None
        sources: tuple[Source, ...] = ()
        answer: Answer | None = None
        # For the Stop button, which names only channel and thread.
        self._lives[(place.channel, place.thread_ts)] = (live, task)
        try:
            async with aclosing(context.answerer.stream(request, trace_id, context.executor)) as parts, live:
                if addressed and not options.ephemeral and not options.quiet:
                    live.open(prose_language(thread.question))
                async for part in parts:
                    if live.stopped.is_set():
                        return
                    if isinstance(part, Draft):
                        sources = part.sources
                        live.begin(part.answer)
                    elif isinstance(part, StepView):
                        live.step(part)
                    elif isinstance(part, Delta):
                        live.write(part)
                    else:
                        answer = part
                assert answer is not None, "a stream ends with its answer"
                not_read = (*thread.not_read, *(f"{item.name} ({why})" for item in surplus))
                beside = tuple(known_defects(answer.defects, (), answer.language))
                notes = (thread.note,) if thread.note else ()
                extras = self.extras(place, not_read=not_read, notes=notes, beside=beside)
                how = {"in_thread": in_thread, "addressed": addressed}
                await self._deliver(place, answer, sources, extras, live, **how, url=url)
        finally:
            # A newer question in the same thread may have replaced this one.
            if self._lives.get((place.channel, place.thread_ts), (None, None))[0] is live:
                del self._lives[(place.channel, place.thread_ts)]

    async def _deliver(
        self,
        place: Place,
        answer: Answer,
        sources: tuple[Source, ...],
        extras: Extras,
        live: LiveAnswer,
        *,
        in_thread: bool,
        addressed: bool,
        url: str,
    ) -> None:
        options = self.options(place.channel)
        self._keep(answer, sources)
        grounded = answer.verdict in GROUNDED
        if not grounded and (options.quiet or not addressed):
            if addressed:
                verdict = verdict_name(answer)
                text = messages("not_covered", answer.language, verdict=verdict)
                await self._whisper(place, [short_reply(text)], in_thread=in_thread)
            return
        if options.ephemeral:
            shared = self.extras(place, not_read=extras.not_read, notes=extras.notes, beside=extras.beside, share=True)
            await self._whisper(place, list(render_answer(answer, shared)), in_thread=in_thread)
            return
        try:
            await live.finish(answer, extras)
        except SlackRefused as refused:
            if not url or refused.error not in NOT_A_MEMBER:
                raise
            note = messages("not_in_channel", answer.language)
            for reply in render_answer(answer, replace(extras, notes=(*extras.notes, note)))[: RESPONSE_USES - 1]:
                await self.workspace.poster.respond(url, reply)
        if answer.verdict == "need_input":
            self._awaited[(place.channel, place.thread_ts)] = place.user
        else:
            self._awaited.pop((place.channel, place.thread_ts), None)

    async def _whisper(self, place: Place, replies: list[Reply], *, in_thread: bool) -> None:
        """To the asker alone. Slack shows that inside a thread only where the thread has replies already."""
        thread_ts = place.thread_ts if in_thread else None
        await self.workspace.poster.whisper(place.channel, place.user, replies, thread_ts)

    def _keep(self, answer: Answer, sources: tuple[Source, ...]) -> Answer:
        question = next((source.text for source in sources if source.name is None), "")
        pasted = tuple(Attachment(name=s.name, content=s.text) for s in sources if s.name is not None)
        self.posted[answer.id] = PostedAnswer(answer=answer, question=question, attachments=pasted)
        return answer

    async def recall(self, answer_id: str) -> PostedAnswer:
        """An earlier answer: from this process, else from the history. Raises `NotFound`."""
        if posted := self.posted.get(answer_id):
            return posted
        context = self.workspace.context
        stored = await context.executor(lambda: context.memory.answer(answer_id))
        if stored is None or not stored.turns:
            raise NotFound(f"no answer {answer_id!r}")
        turn = stored.turns[-1]
        return PostedAnswer(answer=answer_from(stored.answer), question=turn.question, attachments=turn.attachments)

    def extras(
        self,
        place: Place,
        *,
        not_read: tuple[str, ...] = (),
        notes: tuple[str, ...] = (),
        beside: tuple[Block, ...] = (),
        share: bool = False,
    ) -> Extras:
        settings = self.workspace.context.settings
        group, elsewhere = settings.slack_human_group, settings.slack_human_channel
        private = place.direct or share
        return Extras(
            public_url=settings.public_url.rstrip("/"),
            not_read=not_read,
            notes=notes,
            beside=beside,
            human=bool(elsewhere) or (bool(group) and not private),
            share=share,
            asker=place.user,
        )

    async def say(self, place: Place, text: str, *, url: str = "", alone: bool = False) -> None:
        """Post a short message: in the thread, else to the asker alone, else at the response_url. Never raises."""
        reply = short_reply(text)
        if url and alone and await self.workspace.poster.respond(url, reply):
            return
        try:
            if not alone:
                await self.workspace.poster.post(place.channel, place.thread_ts, [reply])
                return
        except (SlackRefused, SlackLost) as error:
            log.warning("could not post in the thread: %s", error)
        if url and not alone and await self.workspace.poster.respond(url, reply):
            return
        try:
            await self.workspace.poster.whisper(place.channel, place.user, [reply])
        except (SlackRefused, SlackLost) as error:
            log.error("no message could be delivered in %s: %s", place.channel, error)

    async def failed(
        self,
        place: Place,
        error: Exception,
        language: str,
        trace_id: str,
        *,
        url: str = "",
        alone: bool = False,
        addressed: bool = True,
    ) -> None:
        """Tell the asker why there is no answer, with the trace id. Never raises."""
        message, hint = messages("unexpected", language), ""
        if isinstance(error, TrainmedicError):
            message, hint = error.message, f"{error.hint}. " if error.hint else ""
            log.warning("not answered, trace_id=%s: %s", trace_id, error.code)
        elif isinstance(error, SlackRefused | SlackLost):
            message = f"Slack: {error.error} {error.needed}".strip() if isinstance(error, SlackRefused) else "Slack"
            log.error("not delivered, trace_id=%s: %s", trace_id, error)
            if isinstance(error, SlackRefused) and error.error in NOT_A_MEMBER:
                message = messages("not_in_channel", language)
        else:
            log.error("unexpected error, trace_id=%s\n%s", trace_id, trace_of(error))
        reason = mask(message).text.rstrip(".。")
        text = messages("failed", language, message=escape(reason), hint=escape(hint), trace_id=trace_id)
        if addressed:
            await self.say(place, text, url=url, alone=alone)


def short_reply(text: str) -> Reply:
    """A short message of our own; ``text`` is escaped already."""
    return Reply(text=text, blocks=(section(text),))
