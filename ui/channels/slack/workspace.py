"""One workspace: what the bot calls there, and what it remembers in this process, all bounded."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from cachetools import LRUCache

from trainmedic.ui.channels.slack.calls import Calls
from trainmedic.ui.channels.slack.files import SlackFiles
from trainmedic.ui.channels.slack.incoming import IncomingMessage, incoming_message
from trainmedic.ui.channels.slack.live import LiveAnswer, Streams
from trainmedic.ui.channels.slack.post import Place, Poster
from trainmedic.ui.channels.slack.scopes import Identity
from trainmedic.ui.channels.slack.settings import SlackChannel, SlackSettings
from trainmedic.ui.context import AppContext

__all__ = ["Place", "Workspace"]
PAGE = 200
MAX_MESSAGES = 1_000
"""Only this many messages of a thread are read, from its beginning."""
THREADS = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """``awaited``: whom we asked back, by channel and thread. ``lives``: the answers in progress, with their tasks."""

    context: AppContext
    calls: Calls
    poster: Poster
    files: SlackFiles
    streams: Streams
    identity: Identity
    key: str
    awaited: LRUCache[tuple[str, str], str] = field(default_factory=lambda: LRUCache(THREADS))
    lives: dict[tuple[str, str], tuple[LiveAnswer, asyncio.Task[Any]]] = field(default_factory=dict)

    def options(self, channel: str) -> SlackChannel:
        channels = self.context.settings.of(SlackSettings).channels
        return channels.get(channel) or channels.get("*") or SlackChannel()

    def incoming(self, message: dict[str, Any]) -> IncomingMessage:
        return incoming_message(message, self.identity.user, self.identity.bot)

    async def thread(self, place: Place) -> list[IncomingMessage]:
        """The thread's messages, oldest first. Raises `SlackRefused` or `SlackLost`."""
        items: dict[str, IncomingMessage] = {}
        cursor: str | None = None
        while len(items) < MAX_MESSAGES:
            page = await self.calls.repeatable(
                "conversations_replies", channel=place.channel, ts=place.thread_ts, limit=PAGE, cursor=cursor
            )
            for item in page.get("messages") or ():
                items.setdefault(str(item.get("ts")), self.incoming(item))  # the first message may come on every page
            cursor = (page.get("response_metadata") or {}).get("next_cursor") or None
            if cursor is None:
                break
        # Compared as numbers: as text, a `ts` with fewer digits would sort wrongly.
        return [items[ts] for ts in sorted(items, key=lambda ts: tuple(int(p) for p in ts.split(".") if p.isdigit()))]
