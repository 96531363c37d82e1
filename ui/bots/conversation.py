"""A message of any channel: its evidence, its question, the answer, and where that goes."""

from __future__ import annotations

import hashlib
import hmac
import logging
import uuid
from collections.abc import Sequence
from contextlib import aclosing, suppress

from cachetools import TTLCache

from trainmedic.kb.errors import TrainmedicError
from trainmedic.kb.mask import mask
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.trace import trace_of
from trainmedic.service.answer import Answer, StepView
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.dialogue.turn import Turn
from trainmedic.ui.bots.channel import BotMessage, Channel, ChannelFailed, FileReference, NotRead
from trainmedic.ui.bots.messages import messages
from trainmedic.ui.bots.question import has_words, is_repeated, prose_language, wants_audit
from trainmedic.ui.bots.seen import SeenEvents
from trainmedic.ui.bots.tasks import Tasks
from trainmedic.ui.context import AppContext
from trainmedic.ui.present import audit_text
from trainmedic.ui.present.bot_text import BotExtras, not_read_line, pages
from trainmedic.ui.present.slack_text import split_markdown

SUBJECT_S = 1_800
"""A question without a thread belongs to the asker's previous one for so long."""
SUBJECTS = 5_000


class Conversations:
    """Answers the messages of one channel. Belongs to one event loop."""

    def __init__(self, context: AppContext, channel: Channel) -> None:
        self.tasks = Tasks()
        self._context = context
        self._channel = channel
        self._seen = SeenEvents()
        self._subjects: TTLCache[tuple[str, str], str] = TTLCache(SUBJECTS, SUBJECT_S)
        self._log = logging.getLogger(f"trainmedic.{channel.name}")

    def accept(self, message: BotMessage) -> None:
        """Answer a message in the background; one that was delivered before is ignored."""
        if not self._seen.claim(message.id):
            return
        if self.tasks.full:
            self._log.warning("too many questions at once; one was refused")
            self.tasks.start(self._say(message, messages("busy", prose_language(message.text))))
            return
        self.tasks.start(self._answer(message))

    async def _answer(self, incoming: BotMessage) -> None:
        language, trace_id, posted = prose_language(incoming.text), uuid.uuid4().hex, ""
        try:
            message = await self._channel.addressed(incoming)
            if message is None:
                return
            language = prose_language(message.text)
            conversation = self._conversation_id(message)
            question, attachments, not_read = await self._evidence(message, await self._turns(conversation), language)
            if not question and not attachments:
                text = not_read_line(not_read, language) if not_read else messages(self._channel.help, language)
                await self._channel.post(message, text)
                return
            posted = await self._progress(message, language)
            if await self._context.executor(lambda: wants_audit(question, attachments, self._context.advisor.read)):
                texts = await self._audit(question, attachments, language)
            else:
                answer = await self._ask(question, attachments, conversation, trace_id, posted)
                extras = BotExtras(public_url=self._context.settings.public_url.rstrip("/"), not_read=not_read)
                texts = pages(answer, extras, self._channel.page_characters)
            await self._deliver(message, posted, texts)
        except Exception as error:
            await self._say(incoming, failure_text(error, language, trace_id, self._log), posted)

    async def _evidence(
        self, message: BotMessage, turns: Sequence[Turn], language: str
    ) -> tuple[str, tuple[Attachment, ...], tuple[str, ...]]:
        """The question, the files, and the skipped files with the reason.

        What the message replies to belongs to the question: "why?" under a pasted log is about the log.
        """
        first = await self._channel.replied_to(message)
        earlier = [message.quoted, first.text if first is not None else ""]
        questions = [turn.question for turn in turns]
        parts = [text for text in earlier if text and not is_repeated(text, questions)]
        files = (*message.files, *(first.files if first is not None else ()))
        attachments, not_read = await self._files(files, language)
        return "\n\n".join(part for part in (*parts, message.text) if part), attachments, not_read

    async def _files(
        self, files: Sequence[FileReference], language: str
    ) -> tuple[tuple[Attachment, ...], tuple[str, ...]]:
        limit = self._context.settings.max_attachments
        read: list[Attachment] = []
        not_read: list[str] = []
        for file in files:
            try:
                if len(read) >= limit:
                    raise NotRead("many", limit=limit)
                read.append(await self._channel.fetch(file))
            except NotRead as reason:
                why = messages(f"not_read.{reason.reason}", language, **reason.values)
                not_read.append(f"{file.name} ({why})")
        return tuple(read), tuple(not_read)

    async def _ask(
        self, question: str, attachments: tuple[Attachment, ...], conversation: str, trace_id: str, posted: str
    ) -> Answer:
        language = prose_language(question) if has_words(question) else "auto"
        request = Ask(
            question=question,
            attachments=attachments,
            conversation_id=conversation,
            language="zh" if language == "zh" else "en" if language == "en" else "auto",
        )
        async with aclosing(self._context.answerer.stream(request, trace_id, self._context.executor)) as parts:
            async for part in parts:
                if isinstance(part, Answer):
                    return part
                if isinstance(part, StepView) and posted:
                    with suppress(ChannelFailed):  # a step that is not shown delays nothing
                        await self._channel.update(posted, f"{part.number}. {part.what}")
        raise AssertionError("a stream ends with its answer")

    async def _audit(self, question: str, attachments: tuple[Attachment, ...], language: str) -> Sequence[str]:
        advisor = self._context.advisor
        view = await self._context.executor(lambda: advisor.audit(attachments, language, question=question))
        return split_markdown(f"```\n{audit_text.report(view, language)}```", self._channel.page_characters)

    async def _progress(self, message: BotMessage, language: str) -> str:
        """The id of the message that the answer will replace; empty if this channel cannot replace any."""
        return await self._channel.post(message, messages("working", language)) if self._channel.updates else ""

    async def _deliver(self, message: BotMessage, posted: str, texts: Sequence[str]) -> None:
        first, *rest = texts
        if posted:
            await self._channel.update(posted, first)
        else:
            await self._channel.post(message, first)
        for text in rest:
            await self._channel.post(message, text)

    async def _say(self, message: BotMessage, text: str, posted: str = "") -> None:
        """A short message, in place of the one that was posted. Never raises."""
        try:
            await self._deliver(message, posted, [text])
        except Exception as error:
            self._log.error("no message could be delivered: %s", type(error).__name__)

    async def _turns(self, conversation: str) -> tuple[Turn, ...]:
        return await self._context.executor(lambda: self._context.memory.turns(conversation))

    def _conversation_id(self, message: BotMessage) -> str:
        """By thread, else by asker for `SUBJECT_S`. Keyed: knowing a place must not give access to its texts."""
        place = (message.chat, message.user)
        subject = self._subjects.get(place, message.id) if not message.thread else message.thread
        self._subjects[place] = subject
        name = f"{message.chat}/{subject}"
        return (
            f"{self._channel.name}-"
            + hmac.new(self._channel.key.encode(), name.encode(), hashlib.sha256).hexdigest()[:40]
        )


def failure_text(error: Exception, language: str, trace_id: str, log: logging.Logger) -> str:
    """Why there is no answer, for the asker; the rest goes to the log, masked."""
    message, hint = messages("unexpected", language), ""
    if isinstance(error, TrainmedicError):
        message, hint = error.message, f"{error.hint}. " if error.hint else ""
        log.warning("not answered, trace_id=%s: %s", trace_id, error.code)
    else:
        log.error("unexpected error, trace_id=%s\n%s", trace_id, trace_of(error))
    return messages("failed", language, message=mask(message).text.rstrip(".。"), hint=hint, trace_id=trace_id)
