"""Where an answer goes in Slack: the thread, streamed; or the asker alone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

from trainmedic.service.answer.schema import Answer, AuditView, StepView
from trainmedic.service.answering import Delta, Draft
from trainmedic.ui.channels.channel import Evidence, Said, Stopped, TurnsOf, conversation_id
from trainmedic.ui.channels.gather import gathered
from trainmedic.ui.channels.messages import messages
from trainmedic.ui.channels.question import prose_language
from trainmedic.ui.channels.slack.calls import SlackLost, SlackRefused
from trainmedic.ui.channels.slack.incoming import IncomingMessage
from trainmedic.ui.channels.slack.live import LiveAnswer
from trainmedic.ui.channels.slack.post import RESPONSE_USES, Place
from trainmedic.ui.channels.slack.workspace import Workspace
from trainmedic.ui.present.slack import GROUNDED, Extras, Reply, render_answer, short_reply, verdict_name
from trainmedic.ui.present.slack_audit import known_defects, render_audit
from trainmedic.ui.present.slack_text import escape

log = logging.getLogger("trainmedic.slack")
NOT_A_MEMBER = frozenset({"not_in_channel", "channel_not_found"})
"""Slack's errors if the bot was not invited."""


class SlackDestination:
    """The `Destination` of one message, click or command.

    ``in_thread``: the message is in a thread that began before it. If it is not ``addressed`` to us, we may stay
    silent. ``alone``: only the asker sees the answer. ``url`` is a response_url: where ``alone`` answers go, and others
    if the thread cannot be written to.
    """

    help = "slack_help"

    def __init__(
        self,
        workspace: Workspace,
        place: Place,
        message: IncomingMessage | None = None,
        *,
        in_thread: bool = False,
        addressed: bool = True,
        alone: bool = False,
        url: str = "",
        language: str = "",
    ) -> None:
        self.conversation_id: str | None = None
        self._workspace, self._place = workspace, place
        self._message = message or IncomingMessage(ts="", user=place.user, text="")
        self._in_thread, self._addressed, self._alone, self._url = in_thread, addressed, alone, url
        self._options = workspace.options(place.channel)
        self._language = language
        self._live: LiveAnswer | None = None

    @property
    def language(self) -> str:
        chosen = self._options.language
        return self._language or (prose_language(self._message.text) if chosen == "auto" else chosen)

    async def gather(self, turns_of: TurnsOf) -> Evidence | None:
        place, message = self._place, self._message
        if self._alone:
            return Evidence(question=message.text, language="zh" if self.language == "zh" else "en")
        self.conversation_id = conversation_id("slack", self._workspace.key, place.team, place.channel, place.thread_ts)
        thread: list[IncomingMessage] = []
        note = ""
        if self._in_thread:
            try:
                thread = await self._workspace.thread(place)
            except (SlackRefused, SlackLost) as error:
                why = f"{error.error} {error.needed}".strip() if isinstance(error, SlackRefused) else "no answer"
                note = messages("unreadable_thread", self.language, why=why)
        earlier = [
            Said(text=item.text, files=item.files, skipped=item.ours or item.ts == message.ts) for item in thread
        ]
        evidence = await gathered(
            Said(text=message.text, files=message.files),
            earlier,
            await turns_of(self.conversation_id),
            self._workspace.files.fetch,
            note=note,
        )
        self._language = prose_language(evidence.question) if self._options.language == "auto" else ""
        return evidence if self._options.language == "auto" else replace(evidence, language=self._options.language)

    async def begin(self, evidence: Evidence) -> None:
        if self._alone:
            return
        workspace, place = self._workspace, self._place
        self._live = LiveAnswer(workspace.poster, workspace.streams, place)
        task = asyncio.current_task()
        assert task is not None
        # For the Stop button, which names only channel and thread.
        workspace.lives[(place.channel, place.thread_ts)] = (self._live, task)
        if self._addressed and not self._options.quiet:
            self._live.open(prose_language(evidence.question))

    async def show(self, part: Draft | StepView | Delta) -> None:
        if self._live is None:
            return
        if self._live.stopped.is_set():
            raise Stopped
        if isinstance(part, Draft):
            self._live.begin(part)
        elif isinstance(part, StepView):  # the model's words are shown once they are verified
            self._live.step(part)

    async def post(self, answer: Answer, evidence: Evidence) -> None:
        thread = (self._place.channel, self._place.thread_ts)
        extras = Extras(
            public_url=self._workspace.context.settings.public_url.rstrip("/"),
            not_read=evidence.not_read,
            notes=(evidence.note,) if evidence.note else (),
            beside=tuple(known_defects(answer.defects, (), answer.language)),
        )
        if answer.verdict not in GROUNDED and self._reserved:
            if self._addressed:
                text = messages("not_covered", answer.language, verdict=verdict_name(answer))
                await self._whisper([short_reply(text)])
            return
        if self._live is None:
            await self._whisper(render_answer(answer, extras))
            return
        try:
            await self._live.finish(answer, extras)
        except SlackRefused as refused:
            if not self._may_whisper(refused):
                raise
            note = messages("not_in_channel", answer.language)
            await self._whisper(render_answer(answer, replace(extras, notes=(*extras.notes, note))))
        if answer.verdict == "need_input":
            self._workspace.awaited[thread] = self._place.user
        else:
            self._workspace.awaited.pop(thread, None)

    async def post_audit(self, view: AuditView) -> None:
        if not view.defects and self._reserved:
            return
        replies = render_audit(view, self.language)
        if self._alone:
            await self._whisper(replies)
            return
        try:
            await self._workspace.poster.post(self._place, replies)
        except SlackRefused as refused:
            if not self._may_whisper(refused):
                raise
            await self._whisper(replies)

    @property
    def _reserved(self) -> bool:
        """Whether the thread is told only what is grounded."""
        return not self._alone and (self._options.quiet or not self._addressed)

    def _may_whisper(self, refused: SlackRefused) -> bool:
        return bool(self._url) and refused.error in NOT_A_MEMBER

    async def say(self, text: str) -> None:
        """Say it in the thread, else to the asker alone. Never raises."""
        if not self._addressed:
            return
        reply = short_reply(escape(text))
        try:
            if not self._alone:
                await self._workspace.poster.post(self._place, [reply])
                return
        except (SlackRefused, SlackLost) as error:
            log.warning("could not post in the thread: %s", error)
        try:
            await self._whisper([reply])
        except (SlackRefused, SlackLost) as error:
            log.error("no message could be delivered in %s: %s", self._place.channel, error)

    async def _whisper(self, replies: Sequence[Reply]) -> None:
        """To the asker alone. A response_url accepts five messages in all."""
        # Slack shows that inside a thread only where the thread has replies already.
        thread_ts = self._place.thread_ts if self._in_thread else None
        poster = self._workspace.poster
        for number, reply in enumerate(replies):
            if not self._url or number >= RESPONSE_USES or not await poster.respond(self._url, reply):
                await poster.whisper(self._place, reply, thread_ts)

    async def end(self) -> None:
        key = (self._place.channel, self._place.thread_ts)
        if self._live is None:
            return
        try:
            await self._live.aclose()
        finally:
            # A newer question in the same thread may have replaced this one.
            if self._workspace.lives.get(key, (None, None))[0] is self._live:
                del self._workspace.lives[key]
