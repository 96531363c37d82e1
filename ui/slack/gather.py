"""From a message in Slack to a question with its evidence: the thread around it and its files."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from trainmedic.kb.model.place import Attachment
from trainmedic.service.dialogue.turn import Turn
from trainmedic.ui.bots.question import has_words, is_repeated, prose_language
from trainmedic.ui.slack.calls import Calls, SlackLost, SlackRefused
from trainmedic.ui.slack.files import Downloads
from trainmedic.ui.slack.incoming import IncomingMessage, incoming_message
from trainmedic.ui.slack.messages import messages

PAGE = 200
MAX_MESSAGES = 1_000
"""Only this many messages of a thread are read, from its beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a conversation is. ``thread_ts`` names its first message; ``direct``: a DM with the bot."""

    team: str
    channel: str
    thread_ts: str
    user: str
    direct: bool = False

    def conversation_id(self, key: str) -> str:
        """The conversation's id in the history. Keyed: knowing a thread's place must not give access to its texts."""
        name = f"{self.team}/{self.channel}/{self.thread_ts}"
        return "slack-" + hmac.new(key.encode(), name.encode(), hashlib.sha256).hexdigest()[:40]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadContext:
    """One question. ``not_read`` names skipped files with the reason, ``note`` anything else that is missing.

    ``language`` is that of the prose, auto if the text is only code.
    """

    question: str
    attachments: tuple[Attachment, ...] = ()
    not_read: tuple[str, ...] = ()
    note: str = ""
    language: Literal["auto", "en", "zh"] = "auto"

    @property
    def empty(self) -> bool:
        return not self.question.strip() and not self.attachments and not self.not_read


@dataclass(frozen=True, slots=True, kw_only=True)
class Gatherer:
    calls: Calls
    downloads: Downloads
    bot_user: str
    bot_id: str

    async def around(
        self, place: Place, message: IncomingMessage, turns: Sequence[Turn], *, in_thread: bool
    ) -> ThreadContext:
        """The question in ``message``. ``turns`` are the earlier questions and answers of this thread.

        The thread's first message belongs to the question: "why?" under a pasted log is about the log. Later messages
        of others are evidence, but not part of the question.
        """
        language = prose_language(message.text)
        thread: list[IncomingMessage] = []
        note = ""
        if in_thread:
            try:
                thread = await self.thread(place)
            except (SlackRefused, SlackLost) as error:
                why = f"{error.error} {error.needed}".strip() if isinstance(error, SlackRefused) else "no answer"
                note = messages("unreadable_thread", language, why=why)
        questions = [turn.question for turn in turns]
        parts: list[str] = []
        replies: list[Attachment] = []
        for number, item in enumerate(thread, start=1):
            if item.ours or item.ts == message.ts or not item.text or is_repeated(item.text, questions):
                continue
            # The thread's first message is the asker's problem; what others replied is evidence only.
            if number == 1:
                parts.append(item.text)
            else:
                replies.append(Attachment(name=f"thread-{number}", content=item.text))
        parts.append(message.text)
        files = [file for item in thread if not item.ours and item.ts != message.ts for file in item.files]
        files_read = await self.downloads.fetch([*message.files, *files], language)
        return ThreadContext(
            question="\n\n".join(part for part in parts if part),
            language=_language(parts),
            attachments=(*files_read.attachments, *replies),
            not_read=files_read.not_read,
            note=note,
        )

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

    def incoming(self, message: dict[str, Any]) -> IncomingMessage:
        return incoming_message(message, self.bot_user, self.bot_id)


def _language(parts: Sequence[str]) -> Literal["auto", "en", "zh"]:
    """The language of the last part that contains prose."""
    prose = [part for part in parts if has_words(part)]
    if not prose:
        return "auto"
    return "zh" if prose_language(prose[-1]) == "zh" else "en"
