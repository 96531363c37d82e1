"""The state of the fake workspace: people, channels, messages, streams, refusals and call rates."""

from __future__ import annotations

import itertools
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

from tests.slack.fake.model import (
    ALL_SCOPES,
    ANN,
    BEN,
    BOT,
    BOT_USER,
    DM,
    GENERAL,
    OTHER,
    PRIVATE,
    Call,
    Channel,
    Fault,
    Json,
    Message,
    Refusal,
    Refused,
    SlackFile,
    Stream,
)

RESPONSE_USES = 5
"""Messages that a ``response_url`` takes."""


class ResponseUrl:
    def __init__(self, channel: str, user: str) -> None:
        self.channel, self.user = channel, user
        self.uses = 0


class Workspace:
    def __init__(self) -> None:
        self.base = ""
        self.bot_token, self.app_token, self.signing_secret = "xoxb-local-bot", "xapp-local-app", "local-signing-secret"
        self.scopes = set(ALL_SCOPES)
        self.users = {ANN: "ann", BEN: "ben", BOT_USER: "trainmedic"}
        channels = (
            Channel(id=GENERAL, name="general", kind="channel", members=frozenset({ANN, BEN, BOT_USER})),
            Channel(id=OTHER, name="other", kind="channel", members=frozenset({ANN, BEN})),
            Channel(id=PRIVATE, name="ops", kind="group", members=frozenset({ANN, BOT_USER})),
            Channel(id=DM, name="ann", kind="im", members=frozenset({ANN, BOT_USER})),
        )
        self.channels = {channel.id: channel for channel in channels}
        self.messages: list[Message] = []
        self.files: dict[str, SlackFile] = {}
        self.streams: dict[str, Stream] = {}
        self.statuses: list[Json] = []
        self.calls: list[Call] = []
        self.refusals: list[Refusal] = []
        self.faults: dict[str, list[Fault]] = defaultdict(list)
        self.response_urls: dict[str, ResponseUrl] = {}
        self.on_post: Callable[[str, Message], None] = lambda what, message: None
        self._lock = threading.Lock()
        self._last_ts = 0
        self._numbers = itertools.count(1)
        self._recent: dict[str, deque[float]] = defaultdict(deque)

    def new_id(self, prefix: str) -> str:
        return f"{prefix}{next(self._numbers):08d}"

    def new_ts(self) -> str:
        """A message's timestamp, greater than all before."""
        with self._lock:
            self._last_ts = max(int(time.time() * 1_000_000), self._last_ts + 1)
            return f"{self._last_ts // 1_000_000}.{self._last_ts % 1_000_000:06d}"

    def new_response_url(self, channel: str, user: str) -> str:
        name = self.new_id("R")
        self.response_urls[name] = ResponseUrl(channel, user)
        return f"{self.base}/response/{name}"

    def dm_of(self, user: str) -> Channel:
        """The conversation of this user with the bot, made if there is none yet."""
        for channel in self.channels.values():
            if channel.kind == "im" and user in channel.members:
                return channel
        channel = Channel(id=self.new_id("D"), name=user, kind="im", members=frozenset({user, BOT_USER}))
        self.channels[channel.id] = channel
        return channel

    def joined(self, name: str) -> Channel:
        """The channel of a call. Raises `Refused` if the bot is not in it."""
        channel = self.dm_of(name) if name in self.users else self.channels.get(name)
        if channel is None:
            raise Refused("channel_not_found")
        if BOT_USER not in channel.members:
            raise Refused("not_in_channel")
        return channel

    def find(self, channel: str, ts: object) -> Message | None:
        """The message of this timestamp that everybody in the channel sees."""
        for message in self.messages:
            if message.ts == ts and message.channel == channel and message.ephemeral_to is None:
                return message
        return None

    def thread(self, channel: str, ts: str) -> list[Message]:
        """The thread that a message belongs to, parent first; empty if there is no such message."""
        member = self.find(channel, ts)
        if member is None:
            return []
        root = member.thread_ts or member.ts
        visible = [message for message in self.messages if message.channel == channel and not message.ephemeral_to]
        return [message for message in visible if root in (message.ts, message.thread_ts)]

    def store(self, message: Message) -> Message:
        self.messages.append(message)
        self.tell("posted", message)
        return message

    def write(self, channel: str, args: Json, content: Json, **fields: Any) -> Message:
        """Store a message of the bot; ``args`` are those of its call, ``content`` its checked text and blocks."""
        return self.store(
            Message(channel=channel, ts=self.new_ts(), user=BOT_USER, bot_id=BOT, sent=dict(args), **content, **fields)
        )

    def edit(self, message: Message, content: Json, sent: Json) -> None:
        for name, value in content.items():
            setattr(message, name, value)
        message.sent = dict(sent)
        self.tell("edited", message)

    def remove(self, message: Message) -> None:
        self.messages.remove(message)
        self.tell("deleted", message)

    def tell(self, what: str, message: Message) -> None:
        """The bot's own posts, edits and deletions come back to it as events."""
        if message.bot_id == BOT and message.ephemeral_to is None:
            self.on_post(what, message)

    def refuse(self, where: str, error: str, detail: str = "") -> None:
        self.refusals.append(Refusal(where=where, error=error, detail=detail))

    def wait_s(self, key: str, calls: int, window_s: float) -> int:
        """Seconds until ``key`` may be used again, 0 if now, which counts as a use: ``calls`` in ``window_s``."""
        now, recent = time.monotonic(), self._recent[key]
        while recent and recent[0] <= now - window_s:
            recent.popleft()
        if len(recent) >= calls:
            return int(recent[0] + window_s - now) + 1
        recent.append(now)
        return 0
