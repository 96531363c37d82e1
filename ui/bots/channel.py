"""What a chat platform has to offer to be a channel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from trainmedic.kb.errors import TrainmedicError
from trainmedic.kb.model.place import Attachment

Json = Mapping[str, Any]


class Refused(Exception):
    """A request that is not the platform's, with the HTTP status and a code for the response."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status = status
        self.code = code


class ChannelFailed(TrainmedicError):
    """The platform does not answer, or refuses a call."""

    code = "channel_failed"
    kind = "unavailable"


class NotRead(Exception):
    """Why a file is skipped: a name under ``not_read`` in messages.toml."""

    def __init__(self, reason: str, **values: object) -> None:
        super().__init__(reason)
        self.reason = reason
        self.values = values


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReference:
    """An attached file. ``key`` is what the platform wants for its download; ``readable`` is False for media."""

    name: str
    key: str
    message: str = ""
    readable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class BotMessage:
    """A message for the bot. ``direct``: nobody else reads it. ``thread`` names the message that it replies to.

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
    files: tuple[FileReference, ...] = ()
    reply: str = ""
    mentions: Mapping[str, tuple[str, str]] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reception:
    """A verified request: the body to respond with at once, and the message if it holds one."""

    body: Json = field(default_factory=dict)
    message: BotMessage | None = None


class Channel(Protocol):
    """One platform. Calls raise `ChannelFailed`."""

    name: str
    path: str
    page_characters: int
    """The longest Markdown text of one message."""
    help: str
    """The message, of messages.toml, that says how to ask."""
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

    async def fetch(self, file: FileReference) -> Attachment:
        """The content of a file. Raises `NotRead`."""

    async def post(self, message: BotMessage, markdown: str) -> str:
        """Reply to a message; the id for `update`, empty if the platform cannot change what was posted."""

    async def update(self, posted: str, markdown: str) -> None:
        """Replace the text of a reply."""

    async def aclose(self) -> None: ...
