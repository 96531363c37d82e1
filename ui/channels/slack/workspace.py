"""One workspace: what the bot calls there, and what it remembers in this process, all bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cachetools import LRUCache

from trainmedic.kb.errors import NotFound
from trainmedic.kb.model.place import Attachment, Source
from trainmedic.service.answer.schema import Answer
from trainmedic.service.settings import SlackChannel
from trainmedic.ui.channels.slack.calls import Calls
from trainmedic.ui.channels.slack.files import SlackFiles
from trainmedic.ui.channels.slack.incoming import IncomingMessage, incoming_message
from trainmedic.ui.channels.slack.live import LiveAnswer, StreamLimits
from trainmedic.ui.channels.slack.place import Place
from trainmedic.ui.channels.slack.post import Poster
from trainmedic.ui.channels.slack.scopes import Identity
from trainmedic.ui.context import AppContext
from trainmedic.ui.present.stored import answer_from

PAGE = 200
MAX_MESSAGES = 1_000
"""Only this many messages of a thread are read, from its beginning."""
THREADS = 5_000
ANSWERS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class PostedAnswer:
    """An answer with its question and attachments, masked."""

    answer: Answer
    question: str
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """``awaited``: whom we asked back, by channel and thread. ``lives``: the answers in progress, with their tasks."""

    context: AppContext
    calls: Calls
    poster: Poster
    files: SlackFiles
    streams: StreamLimits
    identity: Identity
    key: str
    posted: LRUCache[str, PostedAnswer] = field(default_factory=lambda: LRUCache(ANSWERS))
    awaited: LRUCache[tuple[str, str], str] = field(default_factory=lambda: LRUCache(THREADS))
    lives: dict[tuple[str, str], tuple[LiveAnswer, asyncio.Task[Any]]] = field(default_factory=dict)

    def options(self, channel: str) -> SlackChannel:
        channels = self.context.settings.slack_channels
        return channels.get(channel) or channels.get("*") or SlackChannel()

    def incoming(self, message: dict[str, Any]) -> IncomingMessage:
        return incoming_message(message, self.identity.user, self.identity.bot)

    async def thread(self, place: Place) -> list[IncomingMessage]:
        """The thread's messages, oldest first. Raises `SlackRefused` or `SlackLost`."""
        items: dict[str, IncomingMessage] = {}
        cursor: str | None = None
        while len(items) < MAX_MESSAGES:
            page = await self.calls.read(
                "conversations_replies", channel=place.channel, ts=place.thread_ts, limit=PAGE, cursor=cursor
            )
            for item in page.get("messages") or ():
                items.setdefault(str(item.get("ts")), self.incoming(item))  # the first message may come on every page
            cursor = (page.get("response_metadata") or {}).get("next_cursor") or None
            if cursor is None:
                break
        # Compared as numbers: as text, a `ts` with fewer digits would sort wrongly.
        return [items[ts] for ts in sorted(items, key=lambda ts: tuple(int(p) for p in ts.split(".") if p.isdigit()))]

    def keep(self, answer: Answer, sources: Sequence[Source]) -> None:
        question = next((source.text for source in sources if source.name is None), "")
        pasted = tuple(Attachment(name=s.name, content=s.text) for s in sources if s.name is not None)
        self.posted[answer.id] = PostedAnswer(answer=answer, question=question, attachments=pasted)

    async def recall(self, answer_id: str) -> PostedAnswer:
        """An earlier answer: from this process, else from the history. Raises `NotFound`."""
        if posted := self.posted.get(answer_id):
            return posted
        stored = await self.context.executor(lambda: self.context.memory.answer(answer_id))
        if stored is None or not stored.turns:
            raise NotFound(f"no answer {answer_id!r}")
        turn = stored.turns[-1]
        return PostedAnswer(answer=answer_from(stored.answer), question=turn.question, attachments=turn.attachments)
