"""A question from any channel: its evidence, the answer, and what is said if there is none."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Hashable, Sequence
from contextlib import aclosing

from trainmedic.kb.errors import TrainmedicError
from trainmedic.kb.mask import mask
from trainmedic.kb.trace import trace_of
from trainmedic.service.answer.schema import Answer
from trainmedic.service.answering import Stage
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.dialogue.turn import Turn
from trainmedic.ui.channels.channel import Destination, Evidence, Stopped
from trainmedic.ui.channels.messages import messages
from trainmedic.ui.channels.question import wants_audit
from trainmedic.ui.channels.seen import SeenEvents
from trainmedic.ui.channels.tasks import Tasks
from trainmedic.ui.context import AppContext
from trainmedic.ui.present.slack import not_read_line


class Handler:
    """Answers the questions of one channel. Belongs to one event loop."""

    def __init__(self, context: AppContext, channel: str) -> None:
        self.tasks = Tasks()
        self._context = context
        self._seen = SeenEvents()
        self._log = logging.getLogger(f"trainmedic.{channel}")

    def claim(self, *keys: Hashable) -> bool:
        """Whether an event is new: platforms deliver at least once."""
        return self._seen.claim(*keys)

    def accept(self, to: Destination) -> None:
        """Answer in the background."""
        # Refused at once rather than queued: an answer after many minutes helps no one.
        if self.tasks.full:
            self._log.warning("too many questions at once; one was refused")
            self.tasks.start(to.say(messages("busy", to.language)))
            return
        self.tasks.start(self._answer(to))

    def failure(self, error: Exception, language: str, trace_id: str) -> str:
        """Why there is no answer, for the asker; the rest goes to the log, masked."""
        message, hint = messages("unexpected", language), ""
        if isinstance(error, TrainmedicError):
            message, hint = error.message, f"{error.hint}. " if error.hint else ""
            self._log.warning("not answered, trace_id=%s: %s", trace_id, error.code)
        else:
            self._log.error("unexpected error, trace_id=%s\n%s", trace_id, trace_of(error))
        return messages("failed", language, message=mask(message).text.rstrip(".。"), hint=hint, trace_id=trace_id)

    async def _answer(self, to: Destination) -> None:
        trace_id = uuid.uuid4().hex
        try:
            evidence = await to.gather(self._turns)
            if evidence is None:
                return
            if not evidence.question.strip() and not evidence.attachments:
                not_read = evidence.not_read
                await to.say(not_read_line(not_read, to.language) if not_read else messages(to.help, to.language))
                return
            advisor, question, files = self._context.advisor, evidence.question, evidence.attachments
            if await self._context.executor(lambda: wants_audit(question, files, advisor.read)):
                view = await self._context.executor(lambda: advisor.audit(files, to.language, question=question))
                await to.post_audit(view)
                return
            await self._stream(to, evidence, trace_id)
        except Exception as error:
            await to.say(self.failure(error, to.language, trace_id))

    async def _stream(self, to: Destination, evidence: Evidence, trace_id: str) -> None:
        request = Ask(
            question=evidence.question,
            attachments=evidence.attachments,
            conversation_id=to.conversation_id,
            language=evidence.language,
        )
        try:
            await to.begin(evidence)
            async with aclosing(self._context.answerer.stream(request, trace_id, self._context.executor)) as parts:
                async for part in parts:
                    if isinstance(part, Answer):
                        await to.post(part, evidence)
                    elif not isinstance(part, Stage):
                        await to.show(part)
        except Stopped:
            return
        finally:
            await to.end()

    async def _turns(self, conversation: str) -> Sequence[Turn]:
        return await self._context.executor(lambda: self._context.memory.turns(conversation))
