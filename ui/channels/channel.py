"""Common parts of the chat platforms: their messages and files, and where an answer goes."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from trainmedic.kb.errors import TrainmedicError
from trainmedic.kb.model.place import Attachment
from trainmedic.service.answer.schema import Answer, AuditView, StepView
from trainmedic.service.answering import Delta, Draft
from trainmedic.service.dialogue.turn import Turn

Json = Mapping[str, Any]
TurnsOf: TypeAlias = Callable[[str], Awaitable[Sequence[Turn]]]
"""The earlier questions and answers of a conversation, by its id."""


class ChannelFailed(TrainmedicError):
    """The platform does not answer, or refuses a call."""

    code = "channel_failed"
    kind = "unavailable"


class Stopped(Exception):
    """The reader does not want the answer any more."""


class NotRead(Exception):
    """Why a file is skipped: a name under ``not_read`` in messages.toml. ``name``: what the file is called, if new."""

    def __init__(self, reason: str, *, name: str = "", **values: object) -> None:
        super().__init__(reason)
        self.reason = reason
        self.name = name
        self.values = values


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """An attached file. ``source`` is what the platform wants for its download."""

    name: str
    source: Json
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A message of a conversation. ``skipped``: it is the bot's own, or the question itself."""

    text: str
    files: tuple[File, ...] = ()
    skipped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One question. ``not_read`` names skipped files with the reason, ``note`` says what else is missing.

    ``language`` is that of the prose, auto if the text is only code.
    """

    question: str
    attachments: tuple[Attachment, ...] = ()
    not_read: tuple[str, ...] = ()
    note: str = ""
    language: Literal["auto", "en", "zh"] = "auto"


class Destination(Protocol):
    """Where one question came from and its answer goes; it lives as long as the question.

    All but `say` and `end` may raise `ChannelFailed`.
    """

    help: str
    """The message that says how to ask."""
    conversation_id: str | None
    """Known after `gather`; None if the question belongs to none."""

    @property
    def language(self) -> str:
        """That of the bot's own messages."""

    async def gather(self, turns_of: TurnsOf) -> Evidence | None:
        """The question with what was said and sent before; None if it is not meant for the bot."""

    async def begin(self, evidence: Evidence) -> None:
        """Show that the question is being answered."""

    async def show(self, part: Draft | StepView | Delta) -> None:
        """Show how far the answer is. Raises `Stopped`."""

    async def post(self, answer: Answer, evidence: Evidence) -> None: ...

    async def post_audit(self, view: AuditView) -> None: ...

    async def say(self, text: str) -> None:
        """Post a short message of our own, in plain text. Never raises."""

    async def end(self) -> None:
        """Take back what `begin` and `show` left unfinished. Never raises."""


def as_map(value: object) -> Json:
    return value if isinstance(value, Mapping) else {}


def as_maps(value: object) -> Sequence[Json]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def conversation_id(channel: str, key: str, *place: str) -> str:
    """The conversation's id in the history. Keyed: knowing a place must not give access to its texts."""
    name = "/".join(place)
    return f"{channel}-" + hmac.new(key.encode(), name.encode(), hashlib.sha256).hexdigest()[:40]
