"""An answer shown while it is made: Slack's native stream, else an edited message, else nothing until the end.

Streamed text cannot be taken back, so a stream holds only what is certain: the verdict, the steps of an investigation,
and at the end the verified text.

A stream is locked to ``chunks`` or ``markdown_text`` by its first payload; we always use chunks. Slack's method
reference has the limits: 100 appends a minute for all streams together, 20 starts and stops.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from trainmedic.service.answer.schema import Answer, StepView
from trainmedic.ui.channels.messages import messages
from trainmedic.ui.channels.slack.calls import RateLimited, SlackLost, SlackRefused
from trainmedic.ui.channels.slack.place import Place
from trainmedic.ui.channels.slack.post import Poster
from trainmedic.ui.present.slack import (
    BODY,
    MESSAGE,
    Block,
    Extras,
    Reply,
    footer,
    lead,
    markdown,
    packed,
    render_answer,
    text_of,
    weight,
)
from trainmedic.ui.present.slack_text import fallback, neutral, split_markdown

log = logging.getLogger("trainmedic.slack")
FLUSH_S = 1.0
SHARE_S = 0.7
"""Added to the interval for each open stream: the limit on appends is shared."""
EDIT_S = 3.0
"""Slack advises at most one update of a message every three seconds."""
STARTS = 18
WINDOW_S = 60.0
TITLE = 250
UNSUPPORTED = frozenset(
    {
        "channel_type_not_supported",
        "feature_disabled",
        "unknown_method",
        "method_not_supported_for_channel_type",
        "missing_scope",
        "not_allowed_token_type",
        "not_agent_app",
    }
)
"""Errors after which native streams are not tried again in this process."""


@dataclass(slots=True)
class StreamLimits:
    """State shared by the streams of one workspace: how many are open, and how many began recently."""

    flush_s: float = FLUSH_S
    edit_s: float = EDIT_S
    clock: Callable[[], float] = time.monotonic
    unsupported: dict[str, str] = field(default_factory=dict)
    _open: int = 0
    _starts: deque[float] = field(default_factory=deque)

    @property
    def interval_s(self) -> float:
        """Seconds between two appends of one stream."""
        return max(self.flush_s, SHARE_S * self._open)

    def may_start(self, kind: str) -> bool:
        """Whether a native stream may start now in this kind of conversation; if so, it is counted."""
        now = self.clock()
        while self._starts and now - self._starts[0] > WINDOW_S:
            # A sliding window: starts older than a minute no longer count.
            self._starts.popleft()
        if kind in self.unsupported or len(self._starts) >= STARTS:
            return False
        self._starts.append(now)
        return True

    def opened(self) -> None:
        self._open += 1

    def closed(self) -> None:
        self._open -= 1


class LiveAnswer:
    """One answer in progress."""

    def __init__(self, poster: Poster, streams: StreamLimits, place: Place) -> None:
        self.stopped = asyncio.Event()
        self.ts = ""
        self._poster, self._streams, self._place = poster, streams, place
        self._native = False
        self._counted = False
        self._broken = False
        self._cards: dict[str, dict[str, str]] = {}
        self._unsent: dict[str, None] = {}  # cards that Slack has not seen, in order
        self._text = ""  # the Markdown that is certain
        self._sent = 0  # characters of it that Slack has
        self._language = "en"
        self._flusher: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    async def aclose(self) -> None:
        """Stop a stream that is unfinished."""
        await self._stop_flushing()
        if self.ts and self._native and not self.stopped.is_set():
            try:
                for card in self._cards.values():
                    card["status"] = "error" if card["status"] == "in_progress" else card["status"]
                await self._poster.calls("chat_stopStream", channel=self._place.channel, ts=self.ts)
            except (SlackRefused, SlackLost) as error:
                log.warning("a stream could not be stopped: %s", error)
        elif self.ts and not self._native and not self.stopped.is_set():
            await self._poster.delete(self._place.channel, self.ts)  # begun and never finished
        self._close()

    def open(self, language: str) -> None:
        """Start showing progress; the first message appears only after the flush interval."""
        self._language = language
        self._card("read", messages("reading", language), "in_progress")
        self._flusher = asyncio.create_task(self._flushing())

    def begin(self, draft: Answer) -> None:
        """Show the draft's verdict and first cause."""
        self._language = draft.language
        self._text = lead(draft)
        self._card("read", messages("reading", self._language), "complete")
        self._card("write", messages("writing", self._language), "in_progress")

    def step(self, step: StepView) -> None:
        self._card(f"step-{step.number}", step.what, "complete" if step.ok else "error")

    async def finish(self, answer: Answer, extras: Extras) -> None:
        """Post the whole answer. Raises `SlackRefused` or `SlackLost` if nothing could be posted."""
        await self._stop_flushing()
        if self.stopped.is_set():
            return
        for id, card in list(self._cards.items()):
            if card["status"] == "in_progress":  # Slack shows cards still in progress as errors once the stream ends
                self._card(id, card["title"], "complete")
        replies = render_answer(answer, extras)
        if self.ts and not self._broken:
            try:
                if self._native:
                    await self._finish_stream(answer, extras)
                else:
                    await self._poster.update(self._place.channel, self.ts, replies[0])
                    await self._post(replies[1:])
                self._close()
                self.ts = ""
                return
            except (SlackRefused, SlackLost) as error:
                if self._stopped_by_reader(error):
                    return
                log.warning("a stream could not be finished: %s", error)
        # The fallback: remove the partial message and post the whole answer as an ordinary one.
        partial, self.ts = self.ts, ""
        self._close()
        if partial:
            await self._poster.delete(self._place.channel, partial)
        await self._post(replies)

    async def _finish_stream(self, answer: Answer, extras: Extras) -> None:
        """End the stream with the remaining text and the buttons."""
        body = neutral(text_of(answer, short=bool(extras.public_url)))
        first, *rest = split_markdown(body, BODY - len(self._text))
        pieces = [self._text[self._sent :] + first, *rest]
        below: list[Block] = footer(answer, extras)
        # Blocks are possible only in the message that the stream ends with, and they count towards its size.
        alone = len(pieces) == 1 and self._sent + len(pieces[0]) + sum(map(weight, below)) <= MESSAGE
        await self._poster.calls(
            "chat_stopStream",
            channel=self._place.channel,
            ts=self.ts,
            chunks=[*self._unsent_cards(), *([_text(pieces[0])] if pieces[0] else [])] or None,
            blocks=below if alone else None,
        )
        self._native = False
        if not alone:
            await self._post(packed([*map(markdown, pieces[1:]), *below], fallback(body)))

    async def _post(self, replies: tuple[Reply, ...]) -> None:
        await self._poster.post(self._place.channel, self._place.thread_ts, replies)

    def _card(self, id: str, title: str, status: str) -> None:
        known = self._cards.get(id)
        if known is None or known["status"] != status:
            title = title if len(title) <= TITLE else title[: TITLE - 1] + "…"
            self._cards[id] = {"type": "task_update", "id": id, "title": title, "status": status}
            self._unsent[id] = None

    def _unsent_cards(self) -> list[dict[str, Any]]:
        cards = [dict(self._cards[id]) for id in self._unsent]
        self._unsent.clear()
        return cards

    async def _flushing(self) -> None:
        wait_s = self._streams.interval_s
        while not self._broken and not self.stopped.is_set():
            await asyncio.sleep(wait_s)
            try:
                async with self._lock:
                    await self._flush()
                wait_s = self._streams.interval_s if self._native else max(self._streams.edit_s, self._streams.flush_s)
            except RateLimited as limited:
                wait_s = limited.wait_s
            except (SlackRefused, SlackLost) as error:
                if not self._stopped_by_reader(error):
                    log.warning("a stream broke: %s", error)
                    self._broken = True

    async def _flush(self) -> None:
        if not self.ts:
            await self._start()
        elif self._native:
            fresh, text = self._fresh(), self._text[self._sent :]
            if not fresh and not text:
                return
            chunks = [*map(dict, fresh.values()), *([_text(text)] if text else [])]
            await self._poster.calls(
                # No waiting for the rate limit: the next flush contains this text as well.
                "chat_appendStream",
                patience_s=0,
                channel=self._place.channel,
                ts=self.ts,
                chunks=chunks,
            )
            self._mark_sent(fresh, len(text))
        elif self._unsent or len(self._text) > self._sent:
            fresh, length = self._fresh(), len(self._text) - self._sent
            # A refused or limited edit is only late: the next one shows the same.
            await self._poster.update(self._place.channel, self.ts, self._edited(), patience_s=0)
            self._mark_sent(fresh, length)

    async def _start(self) -> None:
        fresh, text = self._fresh(), self._text
        kind = "im" if self._place.direct else "channel"
        if self._streams.may_start(kind):
            # Slack asks for a recipient in channels only.
            who = {} if self._place.direct else {"user": self._place.user, "team": self._place.team}
            try:
                self.ts = str(
                    (
                        await self._poster.calls(
                            "chat_startStream",
                            patience_s=0,
                            channel=self._place.channel,
                            thread_ts=self._place.thread_ts,
                            recipient_user_id=who.get("user"),
                            recipient_team_id=who.get("team"),
                            chunks=[*([_text(text)] if text else []), *map(dict, fresh.values())],
                        )
                    ).get("ts", "")
                )
                self._native = self._counted = True
                self._streams.opened()
                self._mark_sent(fresh, len(text))
                return
            except SlackRefused as refused:
                if refused.error in UNSUPPORTED:
                    self._streams.unsupported[kind] = refused.error
                    log.warning("no native streams: %s; messages are edited instead", refused.error)
        [self.ts] = await self._poster.post(self._place.channel, self._place.thread_ts, [self._edited()])
        self._mark_sent(fresh, len(text))

    def _fresh(self) -> dict[str, dict[str, str]]:
        """The cards that Slack has not seen as they are now."""
        return {id: self._cards[id] for id in self._unsent}

    def _mark_sent(self, fresh: dict[str, dict[str, str]], length: int) -> None:
        for id, card in fresh.items():
            if self._cards[id] is card:  # else it has changed while this was on its way
                self._unsent.pop(id, None)
        self._sent += length

    def _edited(self) -> Reply:
        """The message so far, for workspaces without native streams."""
        marks = {"complete": "✓", "in_progress": "…", "error": "✗"}
        cards = "\n".join(f"- {marks[card['status']]} {neutral(card['title'])}" for card in self._cards.values())
        text = f"{self._text.rstrip()}\n\n{cards}".lstrip()
        notification = fallback(self._text) or messages("working", self._language)
        return Reply(text=notification, blocks=tuple(map(markdown, split_markdown(text, BODY)[:1])))

    def _stopped_by_reader(self, error: Exception) -> bool:
        """Whether the reader pressed Stop; if so, nothing more is sent."""
        if isinstance(error, SlackRefused) and error.error == "stopped_by_user":
            self.stopped.set()
        return self.stopped.is_set()

    async def _stop_flushing(self) -> None:
        """Cancel the flusher, but not in the middle of a call."""
        if self._flusher is not None:
            async with self._lock:  # Slack might apply a call whose result we never see
                self._flusher.cancel()
            await asyncio.wait({self._flusher})

    def _close(self) -> None:
        if self._counted:
            self._streams.closed()
            self._counted = False
        self._native = False


def _text(text: str) -> dict[str, str]:
    return {"type": "markdown_text", "text": text}
