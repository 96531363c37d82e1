"""An answer shown while it is made: Slack's native stream, or "Reading…" that the answer replaces.

Streamed text cannot be taken back, so a stream holds only what is certain: the verdict, the steps of an investigation,
and at the end the verified text. A stream is locked to ``chunks`` or ``markdown_text`` by its first payload; we always
use chunks.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any

from trainmedic.service.answer.schema import Answer, StepView
from trainmedic.service.answering import Draft
from trainmedic.ui.channels.messages import messages
from trainmedic.ui.channels.slack.calls import RateLimited, SlackLost, SlackRefused
from trainmedic.ui.channels.slack.post import Place, Poster
from trainmedic.ui.present.slack import (
    BODY,
    MESSAGE,
    Extras,
    footer,
    further,
    lead,
    markdown,
    packed,
    render_answer,
    short_reply,
    text_of,
    weight,
)
from trainmedic.ui.present.slack_text import fallback, inert, split_markdown

log = logging.getLogger("trainmedic.slack")
FLUSH_S = 1.0
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


@dataclass(frozen=True, slots=True)
class Streams:
    """The streams of one workspace. ``unsupported``: the kinds of conversation that have none."""

    flush_s: float = FLUSH_S
    unsupported: set[str] = field(default_factory=set)


class LiveAnswer:
    """One answer in progress."""

    def __init__(self, poster: Poster, streams: Streams, place: Place) -> None:
        self.stopped = asyncio.Event()
        self.ts = ""
        self._poster, self._streams, self._place = poster, streams, place
        self._native = False
        self._broken = False
        self._cards: dict[str, dict[str, str]] = {}
        self._unsent: dict[str, None] = {}  # cards that Slack has not seen, in order
        self._text = ""  # the Markdown that is certain
        self._sent = 0  # characters of it that Slack has
        self._language = "en"
        self._flusher: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    async def aclose(self) -> None:
        """End a stream that is unfinished, or take back "Reading…"."""
        await self._stop_flushing()
        ts, self.ts = self.ts, ""
        if not ts or self.stopped.is_set():
            return
        if not self._native:
            await self._poster.delete(self._place.channel, ts)
            return
        try:
            await self._poster.calls("chat_stopStream", channel=self._place.channel, ts=ts)
        except (SlackRefused, SlackLost) as error:
            log.warning("a stream could not be stopped: %s", error)

    def open(self, language: str) -> None:
        """Start showing progress; the first message appears only after the flush interval."""
        self._language = language
        self._card("read", messages("reading", language), "in_progress")
        self._flusher = asyncio.create_task(self._flushing())

    def begin(self, draft: Draft) -> None:
        """Show the draft's verdict and first cause, if no model may decide otherwise."""
        self._language = draft.answer.language
        self._text = lead(draft.answer) if draft.decided else ""
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
                    await self._poster.post(self._place, replies[1:])
                self.ts = ""
                return
            except (SlackRefused, SlackLost) as error:
                if self._stopped_by_reader(error):
                    return
                log.warning("a stream could not be finished: %s", error)
        # Remove the partial message and post the whole answer as an ordinary one.
        partial, self.ts = self.ts, ""
        if partial:
            await self._poster.delete(self._place.channel, partial)
        await self._poster.post(self._place, replies)

    async def _finish_stream(self, answer: Answer, extras: Extras) -> None:
        """End the stream with the remaining text and the buttons."""
        body = inert(text_of(answer, short=True))
        first, *rest = split_markdown(body, BODY - len(self._text))
        text, below = self._text[self._sent :] + first, footer(answer, extras)
        # Blocks are possible only in the message that the stream ends with, and they count towards its size.
        alone = not rest and self._sent + len(text) + sum(map(weight, below)) <= MESSAGE
        await self._poster.calls(
            "chat_stopStream",
            channel=self._place.channel,
            ts=self.ts,
            chunks=_chunks([self._cards[id] for id in self._unsent], text) or None,
            blocks=below if alone else None,
        )
        left = () if alone else packed([*map(markdown, rest), *below], fallback(body))
        if replies := (*left, *further(answer, extras)):
            await self._poster.post(self._place, replies)

    def _card(self, id: str, title: str, status: str) -> None:
        known = self._cards.get(id)
        if known is None or known["status"] != status:
            title = title if len(title) <= TITLE else title[: TITLE - 1] + "…"
            self._cards[id] = {"type": "task_update", "id": id, "title": title, "status": status}
            self._unsent[id] = None

    async def _flushing(self) -> None:
        wait_s = self._streams.flush_s
        while not self._broken and not self.stopped.is_set():
            await asyncio.sleep(wait_s)
            wait_s = self._streams.flush_s
            try:
                async with self._lock:
                    await self._flush()
            except RateLimited as limited:
                wait_s = limited.wait_s
            except (SlackRefused, SlackLost) as error:
                if not self._stopped_by_reader(error):
                    log.warning("a stream broke: %s", error)
                    self._broken = True
            if self.ts and not self._native:
                return

    async def _flush(self) -> None:
        fresh, text = {id: self._cards[id] for id in self._unsent}, self._text[self._sent :]
        chunks = _chunks(list(fresh.values()), text)
        if not chunks:
            return
        if self.ts:
            # No waiting for the rate limit: the next flush contains this text as well.
            await self._poster.calls(
                "chat_appendStream", patience_s=0, channel=self._place.channel, ts=self.ts, chunks=chunks
            )
        else:
            await self._start(chunks)
        for id, card in fresh.items():
            if self._cards[id] is card:  # else it has changed while this was on its way
                self._unsent.pop(id, None)
        self._sent += len(text)

    async def _start(self, chunks: list[dict[str, Any]]) -> None:
        place, kind = self._place, "im" if self._place.direct else "channel"
        # Slack asks for a recipient in channels only.
        who = {} if place.direct else {"recipient_user_id": place.user, "recipient_team_id": place.team}
        where = {"channel": place.channel, "thread_ts": place.thread_ts}
        if kind not in self._streams.unsupported:
            try:
                started = await self._poster.calls("chat_startStream", patience_s=0, **where, **who, chunks=chunks)
                self.ts, self._native = str(started.get("ts", "")), True
                return
            except RateLimited:
                raise
            except SlackRefused as refused:
                if refused.error in UNSUPPORTED:
                    self._streams.unsupported.add(kind)
                    log.warning("no native streams: %s", refused.error)
        [self.ts] = await self._poster.post(place, [short_reply(messages("working", self._language))])

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


def _chunks(cards: list[dict[str, str]], text: str) -> list[dict[str, Any]]:
    return [*map(dict, cards), *([{"type": "markdown_text", "text": text}] if text else [])]
