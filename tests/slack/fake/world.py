"""The state of the local Slack: people, places, messages, streams, refusals, rates, and the clock they go by."""

from __future__ import annotations

import itertools
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.slack.fake.values import (
    ALL_EVENTS,
    ALL_SCOPES,
    ANN,
    BEN,
    BOT,
    BOT_USER,
    DM,
    GENERAL,
    OTHER,
    PRIVATE,
    TEAM,
    Call,
    Channel,
    Fault,
    Json,
    Kind,
    Message,
    Refusal,
    Refused,
    User,
)

RESPONSE_USES = 5
RESPONSE_LIFE_S = 1800.0
TRIGGER_LIFE_S = 3.0
STREAM_IDLE_S = 300.0
WINDOW_S = 60.0
PER_MINUTE = {"T1": 1, "T2": 20, "T3": 50, "T4": 100}
POST_BURST = 5
"""Messages that a channel takes at once; then one a second."""


class Clock:
    """Unix seconds; ``forward`` moves them, so that half an hour passes at once."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def now(self) -> float:
        """Unix seconds."""
        return time.time() + self._ahead

    def forward(self, seconds: float) -> None:
        """Let this much time pass."""
        self._ahead += seconds


@dataclass(slots=True, kw_only=True)
class Stream:
    """A streamed message: its state, the mode that the first payload locked, its cards by id."""

    channel: str
    ts: str
    state: Literal["streaming", "stopped", "expired", "stopped_by_user"] = "streaming"
    mode: Literal["markdown_text", "chunks"] | None = None
    written_at: float = 0.0
    cards: dict[str, Json] = field(default_factory=dict)
    title: str | None = None
    blocks: list[Json] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ResponseUrl:
    """A ``response_url``: where it writes, to whom, how often it was used, when it was made."""

    channel: str
    user: str
    made_at: float
    source_ts: str | None = None
    uses: int = 0


class World:
    """All state. It is changed on the fake's loop or under ``changed``, and whoever changes it calls `notify`."""

    def __init__(self, *, tiers: bool, agent_view: bool) -> None:
        self.tiers = tiers
        self.agent_view = agent_view
        self.messages_tab = True
        self.clock = Clock()
        self.base = ""
        self.bot_token = "xoxb-local-bot"
        self.app_token = "xapp-local-app"
        self.signing_secret = "local-signing-secret"
        self.scopes = set(ALL_SCOPES)
        self.subscriptions = set(ALL_EVENTS)
        self.users = {
            ANN: User(id=ANN, name="ann"),
            BEN: User(id=BEN, name="ben"),
            BOT_USER: User(id=BOT_USER, name="trainmedic", bot=True),
        }
        self.channels = {
            GENERAL: Channel(id=GENERAL, name="general", kind="channel", members={ANN, BEN, BOT_USER}),
            OTHER: Channel(id=OTHER, name="other", kind="channel", members={ANN, BEN}),
            PRIVATE: Channel(id=PRIVATE, name="ops", kind="group", members={ANN, BOT_USER}),
            DM: Channel(id=DM, name="ann", kind="im", members={ANN, BOT_USER}),
        }
        self.messages: list[Message] = []
        self.streams: dict[tuple[str, str], Stream] = {}
        self.views: dict[str, Json] = {}
        self.statuses: list[Json] = []
        self.prompts: list[Json] = []
        self.ignored: list[Json] = []
        self.reactions: list[tuple[str, str, str]] = []
        self.calls: list[Call] = []
        self.refusals: list[Refusal] = []
        self.faults: dict[str, list[Fault]] = defaultdict(list)
        self.response_urls: dict[str, ResponseUrl] = {}
        self.triggers: dict[str, float] = {}
        self.used_triggers: set[str] = set()
        self.on_post: Callable[[str, Message, Json | None], None] = lambda what, message, before: None
        self.changed = threading.Condition(threading.RLock())
        self._watchers: list[Callable[[], None]] = []
        self._last_ts = 0
        self._numbers = itertools.count(1)
        self._recent: dict[tuple[str, str], deque[float]] = defaultdict(deque)

    # ── waiting ──────────────────────────────────────────────────────────────────────────────────────────────────────
    def notify(self) -> None:
        """Tell all who wait that something has changed."""
        with self.changed:
            self.changed.notify_all()
            watchers = list(self._watchers)
        for watcher in watchers:
            watcher()

    def watch(self, watcher: Callable[[], None]) -> Callable[[], None]:
        """Call ``watcher`` (from any thread) after each change; the answer ends it."""
        with self.changed:
            self._watchers.append(watcher)

        def end() -> None:
            with self.changed:
                self._watchers.remove(watcher)

        return end

    # ── names and times ──────────────────────────────────────────────────────────────────────────────────────────────
    def new_id(self, prefix: str) -> str:
        """A new id such as Ev000012."""
        return f"{prefix}{next(self._numbers):08d}"

    def new_ts(self) -> str:
        """A message's timestamp, greater than all before."""
        with self.changed:
            self._last_ts = max(int(self.clock.now() * 1_000_000), self._last_ts + 1)
            return f"{self._last_ts // 1_000_000}.{self._last_ts % 1_000_000:06d}"

    def new_trigger(self) -> str:
        """A trigger id, good once and for three seconds."""
        trigger = f"{self.new_id('')}.{TEAM}.trigger"
        self.triggers[trigger] = self.clock.now()
        return trigger

    def use_trigger(self, trigger: object) -> None:
        """Take a trigger id, or refuse."""
        if not isinstance(trigger, str) or trigger not in self.triggers:
            raise Refused("invalid_trigger_id")
        if trigger in self.used_triggers:
            raise Refused("exchanged_trigger_id")
        if self.clock.now() - self.triggers[trigger] > TRIGGER_LIFE_S:
            raise Refused("expired_trigger_id")
        self.used_triggers.add(trigger)

    def new_response_url(self, channel: str, user: str, source_ts: str | None = None) -> str:
        """An address that takes five messages in half an hour."""
        name = self.new_id("R")
        made = ResponseUrl(channel=channel, user=user, made_at=self.clock.now(), source_ts=source_ts)
        self.response_urls[name] = made
        return f"{self.base}/response/{name}"

    # ── places and messages ──────────────────────────────────────────────────────────────────────────────────────────
    def dm_of(self, user: str) -> Channel:
        """The conversation of this user and the bot, made where it is not there yet."""
        for channel in self.channels.values():
            if channel.kind == "im" and user in channel.members:
                return channel
        made = Channel(id=self.new_id("D"), name=user, kind="im", members={user, BOT_USER})
        self.channels[made.id] = made
        return made

    def kind_of(self, channel: str) -> Kind:
        """What kind of conversation it is."""
        return self.channels[channel].kind

    def find(self, channel: str | None, ts: str) -> Message | None:
        """The message that everybody sees under this timestamp."""
        for message in self.messages:
            if message.ts == ts and channel in (None, message.channel) and message.ephemeral_to is None:
                return message
        return None

    def thread(self, channel: str, ts: str) -> list[Message]:
        """The thread of any of its messages, parent first; nothing where there is no such message."""
        asked = self.find(channel, ts)
        if asked is None:
            return []
        root = asked.thread_ts or asked.ts
        kept = [each for each in self.messages if each.channel == channel and each.ephemeral_to is None]
        return [each for each in kept if root in (each.ts, each.thread_ts)]

    def store(self, message: Message) -> Message:
        """Keep a new message, and tell whom it concerns."""
        self.messages.append(message)
        if message.ephemeral_to is None and message.bot_id == BOT:
            self.on_post("posted", message, None)
        self.notify()
        return message

    def edit(self, message: Message, **new: Any) -> None:
        """Change a stored message, and tell whom it concerns."""
        before = message.wire()
        for name, value in new.items():
            setattr(message, name, value)
        message.edits += 1
        if message.ephemeral_to is None:
            self.on_post("edited", message, before)
        self.notify()

    def remove(self, message: Message) -> None:
        """Delete a stored message, and tell whom it concerns."""
        self.messages.remove(message)
        if message.ephemeral_to is None:
            self.on_post("deleted", message, message.wire())
        self.notify()

    # ── strictness ───────────────────────────────────────────────────────────────────────────────────────────────────
    def refuse(self, where: str, error: str, detail: str = "") -> None:
        """Keep that something of the bot was not accepted."""
        self.refusals.append(Refusal(where=where, error=error, detail=detail))
        self.notify()

    def wait_for(self, method: str, tier: str, key: str) -> int:
        """Seconds that the caller has to wait under the method's tier, 0: go on. Counts the call where it may go on.

        ``S`` is one message a second and channel, after a short burst.
        """
        now = self.clock.now()
        window, limit = (1.0 * POST_BURST, POST_BURST) if tier == "S" else (WINDOW_S, PER_MINUTE.get(tier, 10**9))
        recent = self._recent[method, key if tier == "S" else ""]
        while recent and recent[0] <= now - window:
            recent.popleft()
        if self.tiers and len(recent) >= limit:
            return max(1, int(recent[0] + window - now) + 1)
        recent.append(now)
        return 0

    def rates(self, method: str) -> int:
        """Calls of this method that were let through in the last minute."""
        since = self.clock.now() - WINDOW_S
        return sum(1 for call in self.calls if call.method == method and call.at >= since and call.status != 429)
