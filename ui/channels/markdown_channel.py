"""Platforms that take Markdown in reply to a message, such as Feishu and DingTalk."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from cachetools import TTLCache

from trainmedic.kb.model.place import Attachment
from trainmedic.service.answer.schema import Answer, AuditView, StepView
from trainmedic.service.answering import Delta, Draft
from trainmedic.service.settings import Settings
from trainmedic.ui.channels.channel import ChannelFailed, Evidence, File, Json, Said, TurnsOf, conversation_id
from trainmedic.ui.channels.gather import gathered
from trainmedic.ui.channels.messages import messages
from trainmedic.ui.channels.question import prose_language
from trainmedic.ui.present import audit_text
from trainmedic.ui.present.bot_text import pages
from trainmedic.ui.present.slack import Extras
from trainmedic.ui.present.slack_text import split_markdown

SUBJECT_S = 1_800
"""A question without a thread belongs to the asker's previous one for so long."""
SUBJECTS = 5_000


class Refused(Exception):
    """A request that is not the platform's, with the HTTP status and a code for the response."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status = status
        self.code = code


def object_of(body: bytes) -> Json:
    """The JSON object in a request. Raises `Refused`."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise Refused(400, "malformed")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class BotMessage:
    """A message for the bot. ``direct``: no one else reads it. ``thread`` names the message that it replies to.

    ``quoted`` is the text of that message if the platform sends it along; ``reply`` is what the channel needs for
    posting. ``mentions``: the id and the name of each mentioned person, by their mark in the text.
    """

    id: str
    chat: str
    user: str
    text: str
    direct: bool
    thread: str = ""
    quoted: str = ""
    files: tuple[File, ...] = ()
    reply: str = ""
    mentions: Mapping[str, tuple[str, str]] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reception:
    """A verified request: the body to respond with at once, and the message if it holds one."""

    body: Json = field(default_factory=dict)
    message: BotMessage | None = None


class MarkdownChannel(Protocol):
    """One platform. Calls raise `ChannelFailed`."""

    name: str
    path: str
    page_characters: int
    """The longest Markdown text of one message."""
    key: str
    """A secret of the app, which makes conversation ids unguessable."""
    updates: bool
    """Whether a posted message can be changed."""

    def receive(self, headers: Mapping[str, str], body: bytes) -> Reception:
        """Verify and parse a request; header names are in lower case. Raises `Refused`."""

    async def addressed(self, message: BotMessage) -> BotMessage | None:
        """The message without the bot's own mention, or None if it is not meant for the bot."""

    async def replied_to(self, message: BotMessage) -> BotMessage | None:
        """The message that this one replies to."""

    async def fetch(self, file: File) -> Attachment:
        """The content of a file. Raises `NotRead`."""

    async def post(self, message: BotMessage, markdown: str) -> str:
        """Reply to a message; the id for `update`, empty if the platform cannot change what was posted."""

    async def update(self, posted: str, markdown: str) -> None:
        """Replace the text of a reply."""

    async def aclose(self) -> None: ...


class Subjects:
    """Which conversation a message belongs to: its thread's, else that of the asker's last question."""

    def __init__(self) -> None:
        self._recent: TTLCache[tuple[str, str], str] = TTLCache(SUBJECTS, SUBJECT_S)

    def of(self, message: BotMessage) -> str:
        place = (message.chat, message.user)
        subject = message.thread or self._recent.get(place, message.id)
        self._recent[place] = subject
        return subject


class MarkdownReply:
    """The `Destination` of one message: "Reading…" where that can be replaced, then the answer in its place."""

    help = "help"

    def __init__(self, channel: MarkdownChannel, message: BotMessage, subjects: Subjects, settings: Settings) -> None:
        self.conversation_id: str | None = None
        self._channel, self._message = channel, message
        self._subjects, self._settings = subjects, settings
        self._posted = ""

    @property
    def language(self) -> str:
        return prose_language(self._message.text)

    async def gather(self, turns_of: TurnsOf) -> Evidence | None:
        message = await self._channel.addressed(self._message)
        if message is None:
            return None
        self._message = message
        place = (message.chat, self._subjects.of(message))
        self.conversation_id = conversation_id(self._channel.name, self._channel.key, *place)
        first = await self._channel.replied_to(message)
        text = "\n\n".join(part for part in (message.quoted, first.text if first is not None else "") if part)
        earlier = Said(text=text, files=first.files if first is not None else ())
        return await gathered(
            Said(text=message.text, files=message.files),
            [earlier],
            await turns_of(self.conversation_id),
            self._channel.fetch,
        )

    async def begin(self, evidence: Evidence) -> None:
        if self._channel.updates:
            self._posted = await self._channel.post(self._message, messages("working", self.language))

    async def show(self, part: Draft | StepView | Delta) -> None:
        if isinstance(part, StepView) and self._posted:
            with suppress(ChannelFailed):  # a step that is not shown delays nothing
                await self._channel.update(self._posted, f"{part.number}. {part.what}")

    async def post(self, answer: Answer, evidence: Evidence) -> None:
        extras = Extras(public_url=self._settings.public_url.rstrip("/"), not_read=evidence.not_read)
        await self._deliver(pages(answer, extras, self._channel.page_characters))

    async def post_audit(self, view: AuditView) -> None:
        report = f"```\n{audit_text.report(view, self.language)}```"
        await self._deliver(split_markdown(report, self._channel.page_characters))

    async def say(self, text: str) -> None:
        try:
            await self._deliver([text])
        except Exception as error:
            log = logging.getLogger(f"trainmedic.{self._channel.name}")
            log.error("no message could be delivered: %s", type(error).__name__)

    async def end(self) -> None:
        """Called when the answer, or the reason why there is none, has replaced the text of `begin`."""

    async def _deliver(self, texts: Sequence[str]) -> None:
        first, *rest = texts
        if self._posted:
            await self._channel.update(self._posted, first)
        else:
            await self._channel.post(self._message, first)
        for text in rest:
            await self._channel.post(self._message, text)
