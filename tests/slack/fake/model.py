"""The people, places, messages, calls and deliveries of the fake workspace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote

Json = dict[str, Any]
Kind = Literal["im", "channel", "group"]

TEAM, APP, BOT_USER, BOT = "T0LOCAL", "A0MEDIC", "U0BOT", "B0BOT"
ANN, BEN = "U0ANN", "U0BEN"
GENERAL, OTHER, PRIVATE, DM = "C0GENERAL", "C0OTHER", "C0PRIVATE", "D0ANN"
PATIENCE_S = 10.0
"""How long a test waits for an event."""

HISTORY_SCOPES = {"im": "im:history", "channel": "channels:history", "group": "groups:history"}
ALL_SCOPES = frozenset({
    *HISTORY_SCOPES.values(), "app_mentions:read", "assistant:write", "channels:read", "chat:write", "commands",
    "files:read", "groups:read", "im:read", "im:write", "mpim:history", "mpim:read", "reactions:write", "users:read",
})  # fmt: skip
ALL_EVENTS = frozenset({
    "agent_session_stopped", "agent_session_title_changed", "app_context_changed", "app_home_opened", "app_mention",
    "message.channels", "message.groups", "message.im", "message.mpim",
})  # fmt: skip


class Refused(Exception):
    """A Web API answer with ``ok: false``; ``extra`` are further keys of its body."""

    def __init__(self, error: str, detail: str = "", **extra: Any) -> None:
        super().__init__(error)
        self.error = error
        self.detail = detail
        self.extra = extra

    def body(self) -> Json:
        messages = {"response_metadata": {"messages": [f"[ERROR] {self.detail}"]}} if self.detail else {}
        return {"ok": False, "error": self.error, **messages, **self.extra}


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    id: str
    name: str
    kind: Kind
    members: frozenset[str]

    @property
    def wire(self) -> Json:
        """The channel as payloads name it."""
        return {"id": self.id, "name": "directmessage" if self.kind == "im" else self.name}


@dataclass(slots=True, kw_only=True)
class SlackFile:
    """An uploaded file. ``claims`` is the size that its description gives, ``repeat`` how often the content is sent.

    ``mode``: hosted, snippet, external, tombstone, hidden_by_limit. ``access``: visible, check_file_info (only its id
    is given), access_denied. ``elsewhere`` redirects to another host.
    """

    id: str
    name: str
    content: bytes
    mimetype: str = "text/plain"
    mode: str = "hosted"
    access: str = "visible"
    claims: int | None = None
    repeat: int = 1
    elsewhere: bool = False

    def wire(self, base: str, *, whole: bool = False) -> Json:
        """The file as events describe it; ``whole`` as files.info does."""
        if self.access == "check_file_info" and not whole:
            return {"id": self.id, "file_access": self.access}
        if self.mode in ("tombstone", "hidden_by_limit"):
            return {"id": self.id, "mode": self.mode}
        place = "https://drive.invalid" if self.mode == "external" else f"{base}/files-pri/{TEAM}-{self.id}"
        return {
            "id": self.id,
            "name": self.name,
            "mimetype": self.mimetype,
            "filetype": "text" if self.mode == "snippet" else self.name.rpartition(".")[2],
            "size": len(self.content) * self.repeat if self.claims is None else self.claims,
            "mode": self.mode,
            "is_external": self.mode == "external",
            "file_access": "visible" if whole and self.access == "check_file_info" else self.access,
            "url_private": f"{place}/{quote(self.name)}",
            "url_private_download": f"{place}/download/{quote(self.name)}",
        }


@dataclass(slots=True, kw_only=True)
class Message:
    """A stored message. ``sent`` are the arguments of the bot's call, empty for a user's message.

    ``markdown`` is the Markdown that the bot sent, which Slack stores as rich text ``blocks``. ``ephemeral_to`` is the
    only user who sees the message.
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
    subtype: str | None = None
    ephemeral_to: str | None = None
    sent: Json = field(default_factory=dict)

    @property
    def shown(self) -> str:
        """The text that a reader sees: that of the blocks if there are any."""
        return "\n".join(block_texts(self.blocks)) if self.blocks else self.text

    def wire(self) -> Json:
        """The message as Slack writes it into events and answers."""
        optional = {
            "thread_ts": self.thread_ts,
            "bot_id": self.bot_id,
            "app_id": APP if self.bot_id else None,
            "blocks": self.blocks,
            "files": self.files,
            "subtype": self.subtype,
        }
        body = {"type": "message", "user": self.user, "text": self.text, "ts": self.ts, "team": TEAM}
        return body | {name: value for name, value in optional.items() if value}


def block_texts(value: object) -> list[str]:
    """Every text of some blocks in reading order, without addresses and values."""
    if isinstance(value, list):
        return [text for item in value for text in block_texts(item)]
    if not isinstance(value, dict):
        return []
    texts: list[str] = []
    for name, inner in value.items():
        if name in ("text", "title", "details", "output") and isinstance(inner, str):
            texts.append(inner)
        elif name not in ("confirm", "style"):
            texts.extend(block_texts(inner))
    return texts


@dataclass(slots=True, kw_only=True)
class Stream:
    """The state of a streamed message, its task cards by id."""

    channel: str
    ts: str
    state: Literal["streaming", "stopped", "stopped_by_user"] = "streaming"
    cards: dict[str, Json] = field(default_factory=dict)
    text: str = ""

    def end(self, state: Literal["stopped", "stopped_by_user"]) -> None:
        """Slack shows a card that is still in progress as an error."""
        self.state = state
        for card in self.cards.values():
            if card["status"] == "in_progress":
                card["status"] = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A Web API call and its answer."""

    method: str
    args: Mapping[str, Any]
    answer: Mapping[str, Any]


@dataclass(slots=True, kw_only=True)
class Refusal:
    """Something of the bot that Slack did not accept. ``expected`` once a test has asserted it."""

    where: str
    error: str
    detail: str = ""
    expected: bool = False


@dataclass(slots=True, kw_only=True)
class Fault:
    """How a method fails the next ``times`` times (None: always).

    ``status`` 429 carries ``retry_after``, any other an HTML page; ``drop`` closes the connection without an answer.
    """

    status: int = 200
    retry_after: int = 1
    error: str | None = None
    drop: bool = False
    times: int | None = 1


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One sending of a payload; ``ack_s`` is the time to its acknowledgement, ``reply`` what that carried."""

    id: str
    ack_s: float | None = None
    reply: Any = None
    late: bool = False


@dataclass(slots=True, kw_only=True)
class Delivery:
    """A payload on its way to the bot, with all its attempts."""

    kind: Literal["events_api", "slash_commands", "interactive"]
    payload: Json
    attempts: list[Attempt] = field(default_factory=list)
    on_ack: Callable[[Any], None] | None = None

    @property
    def acked(self) -> bool:
        """Whether an attempt was acknowledged in time."""
        return any(attempt.ack_s is not None and not attempt.late for attempt in self.attempts)

    @property
    def ack_s(self) -> float | None:
        return next((attempt.ack_s for attempt in self.attempts if attempt.ack_s is not None), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A user's message and the deliveries that it causes."""

    message: Message
    deliveries: tuple[Delivery, ...]

    @property
    def ts(self) -> str:
        return self.message.ts


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpReply:
    status: int
    body: str
