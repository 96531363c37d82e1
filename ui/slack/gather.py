"""From a message in Slack to a question with its evidence: the thread around it and the files in it."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from trainmedic.kb.mask import mask
from trainmedic.kb.model.place import Attachment
from trainmedic.service.storage.history import Turn
from trainmedic.ui.slack.calls import Calls, SlackLost, SlackRefused
from trainmedic.ui.slack.files import Downloads
from trainmedic.ui.slack.incoming import IncomingMessage, has_words, spoken, written
from trainmedic.ui.slack.messages import messages

PAGE = 200
MAX_MESSAGES = 1_000
"""Messages of one thread that are read, the first ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a conversation is. ``thread_ts`` is the message that it hangs on; ``direct`` a DM with the bot."""

    team: str
    channel: str
    thread_ts: str
    user: str
    direct: bool = False

    def conversation_id(self, key: str) -> str:
        """The conversation's name in the history. Keyed: a thread's place must not be enough to ask for its texts."""
        name = f"{self.team}/{self.channel}/{self.thread_ts}"
        return "slack-" + hmac.new(key.encode(), name.encode(), hashlib.sha256).hexdigest()[:40]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadContext:
    """One question. ``not_read`` names files with the reason; ``note`` says what else is missing.

    ``language`` is that of the words, auto where there are none.
    """

    question: str
    attachments: tuple[Attachment, ...] = ()
    not_read: tuple[str, ...] = ()
    note: str = ""
    language: Literal["auto", "en", "zh"] = "auto"

    @property
    def empty(self) -> bool:
        """Whether there is nothing to answer."""
        return not self.question.strip() and not self.attachments and not self.not_read


@dataclass(frozen=True, slots=True, kw_only=True)
class Gatherer:
    """Reads threads and files with the bot's permissions."""

    calls: Calls
    downloads: Downloads
    bot_user: str
    bot_id: str

    async def around(
        self, place: Place, message: IncomingMessage, turns: Sequence[Turn], *, in_thread: bool
    ) -> ThreadContext:
        """The question that ``message`` asks. ``turns`` were answered in this thread before.

        The thread's first message belongs to the question: "why?" under a pasted log asks about the log. What others
        wrote in between is evidence, but not the question.
        """
        language = spoken(message.text)
        thread: list[IncomingMessage] = []
        note = ""
        if in_thread:
            try:
                thread = await self.thread(place)
            except (SlackRefused, SlackLost) as error:
                why = f"{error.error} {error.needed}".strip() if isinstance(error, SlackRefused) else "no answer"
                note = messages("unreadable_thread", language, why=why)
        asked = [turn.question for turn in turns]
        parts: list[str] = []
        beside: list[Attachment] = []
        for number, item in enumerate(thread, start=1):
            if item.own or item.ts == message.ts or not item.text or _among(item.text, asked):
                continue
            if number == 1:
                parts.append(item.text)
            else:
                beside.append(Attachment(name=f"thread-{number}", content=item.text))
        parts.append(message.text)
        files = [file for item in thread if not item.own and item.ts != message.ts for file in item.files]
        fetched = await self.downloads.fetch([*message.files, *files], language)
        return ThreadContext(
            question="\n\n".join(part for part in parts if part),
            language=_language(parts),
            attachments=(*fetched.attachments, *beside),
            not_read=fetched.not_read,
            note=note,
        )

    async def thread(self, place: Place) -> list[IncomingMessage]:
        """The thread's messages, oldest first. Raises `SlackRefused` or `SlackLost`."""
        found: dict[str, IncomingMessage] = {}
        cursor: str | None = None
        while len(found) < MAX_MESSAGES:
            page = await self.calls.read(
                "conversations_replies", channel=place.channel, ts=place.thread_ts, limit=PAGE, cursor=cursor
            )
            for item in page.get("messages") or ():
                found.setdefault(str(item.get("ts")), self.written(item))  # the first message may come on every page
            cursor = (page.get("response_metadata") or {}).get("next_cursor") or None
            if cursor is None:
                break
        return [found[ts] for ts in sorted(found, key=lambda ts: tuple(int(p) for p in ts.split(".") if p.isdigit()))]

    def written(self, message: dict[str, Any]) -> IncomingMessage:
        """A message as we read it."""
        return written(message, self.bot_user, self.bot_id)


def _language(parts: Sequence[str]) -> Literal["auto", "en", "zh"]:
    """The language of the last part that has words."""
    said = [part for part in parts if has_words(part)]
    if not said:
        return "auto"
    return "zh" if spoken(said[-1]) == "zh" else "en"


def _among(text: str, asked: Sequence[str]) -> bool:
    """Whether an earlier question held this text. What is stored is masked."""
    masked = mask(text).text.strip()
    return any(masked in question for question in asked)
