"""What the local Slack hands out and keeps: people, places, messages, calls, deliveries, faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Json = dict[str, Any]

TEAM = "T0LOCAL"
APP = "A0MEDIC"
BOT_USER = "U0BOT"
BOT = "B0BOT"
ANN = "U0ANN"
BEN = "U0BEN"
GENERAL = "C0GENERAL"
OTHER = "C0OTHER"
PRIVATE = "C0PRIVATE"
DM = "D0ANN"

PATIENCE_S = 10.0
"""How long a test waits for something that is about to happen."""

ALL_SCOPES = frozenset(
    {
        "app_mentions:read",
        "assistant:write",
        "channels:history",
        "channels:read",
        "chat:write",
        "commands",
        "files:read",
        "groups:history",
        "groups:read",
        "im:history",
        "im:read",
        "im:write",
        "mpim:history",
        "mpim:read",
        "reactions:write",
        "users:read",
    }
)
ALL_EVENTS = frozenset(
    {
        "agent_session_stopped",
        "agent_session_title_changed",
        "app_context_changed",
        "app_home_opened",
        "app_mention",
        "message.channels",
        "message.groups",
        "message.im",
        "message.mpim",
    }
)
Kind = Literal["im", "channel", "group", "mpim"]
EVENT_OF = {"im": "message.im", "channel": "message.channels", "group": "message.groups", "mpim": "message.mpim"}
"""The subscription that delivers the messages of a kind of conversation."""
HISTORY_OF = {"im": "im:history", "channel": "channels:history", "group": "groups:history", "mpim": "mpim:history"}
"""The scope that lets an app read a kind of conversation."""


class Refused(Exception):
    """A Web API answer with ``ok: false``. ``extra`` are further keys of the answer."""

    def __init__(self, error: str, *messages: str, **extra: Any) -> None:
        super().__init__(error)
        self.error = error
        self.messages = list(messages)
        self.extra = extra

    def answer(self) -> Json:
        """The body that is sent."""
        body: Json = {"ok": False, "error": self.error, **self.extra}
        if self.messages:
            body["response_metadata"] = {"messages": [f"[ERROR] {message}" for message in self.messages]}
        return body


@dataclass(slots=True, kw_only=True)
class User:
    """Somebody of the workspace; ``locale`` such as en-US, zh-CN."""

    id: str
    name: str
    locale: str = "en-US"
    bot: bool = False


@dataclass(slots=True, kw_only=True)
class Channel:
    """A conversation and who is in it."""

    id: str
    name: str
    kind: Kind
    members: set[str]
    archived: bool = False


@dataclass(slots=True, kw_only=True)
class Message:
    """One message as stored. ``sent`` are the arguments of the call that made it, empty for a user's.

    ``markdown`` is what came as Markdown (streamed or in one piece); ``blocks`` is what Slack keeps, in which Markdown
    is translated to rich text. ``ephemeral_to`` is the one person who sees it. ``edits`` counts its changes.
    """

    channel: str
    ts: str
    user: str
    text: str = ""
    thread_ts: str | None = None
    bot_id: str | None = None
    blocks: list[Json] = field(default_factory=list)
    files: list[Json] = field(default_factory=list)
    markdown: str = ""
    metadata: Json | None = None
    subtype: str | None = None
    ephemeral_to: str | None = None
    sent: Json = field(default_factory=dict)
    edits: int = 0
    streamed: bool = False

    @property
    def shown(self) -> str:
        """All that a reader sees, in reading order: the blocks where there are any, else the text."""
        return "\n".join(piece for block in self.blocks for piece in texts(block)) if self.blocks else self.text

    def wire(self) -> Json:
        """The message as Slack writes it into events and answers."""
        body: Json = {"type": "message", "user": self.user, "text": self.text, "ts": self.ts, "team": TEAM}
        optional = {
            "thread_ts": self.thread_ts,
            "bot_id": self.bot_id,
            "blocks": self.blocks,
            "files": self.files,
            "metadata": self.metadata,
            "subtype": self.subtype,
        }
        body.update({name: value for name, value in optional.items() if value})
        if self.bot_id:
            body["app_id"] = APP
        if self.edits:
            body["edited"] = {"user": self.user, "ts": self.ts}
        return body


def texts(value: object) -> list[str]:
    """Every text of a block, in reading order; addresses and values are not read."""
    if isinstance(value, list):
        return [text for item in value for text in texts(item)]
    if not isinstance(value, dict):
        return []
    found: list[str] = []
    for name, inner in value.items():
        if name in ("text", "title", "details", "output") and isinstance(inner, str):
            found.append(inner)
        elif isinstance(inner, dict | list) and name not in ("confirm", "metadata", "style"):
            found.extend(texts(inner))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One Web API call and its answer. ``at`` is the clock's, ``encoding`` json, form or query."""

    method: str
    args: Mapping[str, Any]
    encoding: str
    at: float
    status: int
    answer: Mapping[str, Any]

    @property
    def error(self) -> str | None:
        """The error of the answer, None where it was ok."""
        return None if self.answer.get("ok") else str(self.answer.get("error", self.status))


@dataclass(slots=True, kw_only=True)
class Refusal:
    """One thing that Slack did not accept from the bot. ``expected`` where the test has asserted it."""

    where: str
    error: str
    detail: str = ""
    expected: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What a method does wrong, ``times`` times (None: always), after ``latency_s``.

    ``status`` 429 carries ``retry_after``, another one an HTML page; ``error`` is any Slack error; ``drop`` closes the
    connection without an answer, before or after the call has had its effect.
    """

    latency_s: float = 0.0
    status: int = 200
    retry_after: int = 1
    error: str | None = None
    drop: Literal["before", "after"] | None = None
    times: int | None = 1


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One sending of a payload. ``ack_s`` is the time to its acknowledgement, None while there is none.

    ``sent_at`` is of the monotonic clock; ``late`` where the deadline passed, whether or not something came after it.
    """

    envelope_id: str
    retry_attempt: int
    retry_reason: str
    sent_at: float
    ack_s: float | None = None
    payload: Any = None
    late: bool = False


@dataclass(slots=True, kw_only=True)
class Delivery:
    """A payload on its way to the bot, with all its attempts. ``user_saw`` is the error that the user was shown."""

    kind: Literal["events_api", "slash_commands", "interactive"]
    payload: Json
    event_id: str | None = None
    attempts: list[Attempt] = field(default_factory=list)
    user_saw: str | None = None
    given_up: bool = False
    on_ack: Callable[[Any], None] | None = None

    @property
    def acked(self) -> bool:
        """Whether an attempt was acknowledged in time."""
        return any(attempt.ack_s is not None and not attempt.late for attempt in self.attempts)

    @property
    def ack_s(self) -> float | None:
        """Seconds from sending to the first acknowledgement."""
        return next((attempt.ack_s for attempt in self.attempts if attempt.ack_s is not None), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A user's message and the deliveries that it made."""

    message: Message
    deliveries: tuple[Delivery, ...]

    @property
    def ts(self) -> str:
        """Its timestamp, which is its name."""
        return self.message.ts


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpReply:
    """What the bot's HTTP endpoint answered."""

    status: int
    body: str
    headers: Mapping[str, str]
