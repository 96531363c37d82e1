"""An answer that is seen to come: Slack's native stream, else a message that is edited, else nothing until the end.

A stream holds only what is certain, because what was streamed cannot be taken back: the verdict, the steps of an
investigation, and at the end the verified text. With ``live_text`` the model's words are shown as they come; where
verification changed them, the message is replaced.

A stream is locked to ``chunks`` or ``markdown_text`` by its first payload; here it is chunks everywhere. Slack's method
reference has the limits: appends 100 a minute for all streams together, starts and stops 20.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from trainmedic.service.answer import Answer, StepView
from trainmedic.service.answering import Delta
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
from trainmedic.ui.slack.calls import RateLimited, SlackLost, SlackRefused
from trainmedic.ui.slack.gather import Place
from trainmedic.ui.slack.messages import messages
from trainmedic.ui.slack.post import Poster

log = logging.getLogger("trainmedic.slack")
FLUSH_S = 1.0
SHARE_S = 0.7
"""Added to the interval by every stream that is open: appends are counted for all together."""
EDIT_S = 3.0
"""Slack advises one update of a message in three seconds."""
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
"""What tells that native streams are not to be had: not tried again in this process."""


@dataclass(slots=True)
class StreamLimits:
    """What the streams of one workspace share: how many are open, and how many were begun lately."""

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
        """Whether a native stream can be begun now in this kind of conversation; if so, it is counted."""
        now = self.clock()
        while self._starts and now - self._starts[0] > WINDOW_S:
            self._starts.popleft()
        if kind in self.unsupported or len(self._starts) >= STARTS:
            return False
        self._starts.append(now)
        return True

    def opened(self) -> None:
        """One stream more."""
        self._open += 1

    def closed(self) -> None:
        """One stream less."""
        self._open -= 1


class Live:
    """One answer on its way. Used as a context: leaving it stops what is still open."""

    def __init__(self, poster: Poster, streams: StreamLimits, place: Place, *, live_text: bool = False) -> None:
        self.stopped = asyncio.Event()
        self.ts = ""
        self._poster, self._streams, self._place, self._live_text = poster, streams, place, live_text
        self._native = False
        self._counted = False
        self._broken = False
        self._full = False
        self._cards: dict[str, dict[str, str]] = {}
        self._fresh: dict[str, None] = {}  # cards that Slack has not seen, in order
        self._text = ""  # all Markdown of this message
        self._sent = 0  # characters of it that Slack has
        self._lead = ""
        self._raw = ""  # the model's words
        self._language = "en"
        self._flusher: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    async def __aenter__(self) -> Live:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._still()
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
        """A question was taken on. That is shown when even what is certain takes longer than a moment."""
        self._language = language
        self._card("read", messages("reading", language), "in_progress")
        self._flusher = asyncio.create_task(self._flushing())

    def begin(self, draft: Answer) -> None:
        """What is certain at once."""
        self._language = draft.language
        self._lead = self._text = lead(draft)
        self._card("read", messages("reading", self._language), "complete")
        self._card("write", messages("writing", self._language), "in_progress")

    def step(self, step: StepView) -> None:
        """One step of an investigation."""
        self._card(f"step-{step.number}", step.what, "complete" if step.ok else "error")

    def write(self, delta: Delta) -> None:
        """Words of the model as they come, before they are verified."""
        if not self._live_text or delta.kind == "receipt":
            return
        self._raw += delta.text
        whole = self._raw.lstrip("\n")
        # A "<" at the end may become a mention by what follows it.
        shown = self._lead + neutral(whole[:-1] if whole.endswith("<") else whole)
        if len(shown) > BODY:
            self._full = True
        if not self._full:
            self._text = shown

    async def finish(self, answer: Answer, extras: Extras) -> None:
        """Put the whole answer there. Raises `SlackRefused` or `SlackLost` where nothing could be posted."""
        await self._still()
        if self.stopped.is_set():
            return
        for id, card in list(self._cards.items()):
            if card["status"] == "in_progress":  # left so, it would be shown as an error
                self._card(id, card["title"], "complete")
        replies = render_answer(answer, extras)
        if self.ts and not self._broken:
            try:
                if self._native:
                    done = await self._finish_stream(answer, extras)
                else:
                    await self._poster.update(self._place.channel, self.ts, replies[0])
                    await self._post(replies[1:])
                    done = True
                if done or self.stopped.is_set():
                    self._done()
                    return
            except (SlackRefused, SlackLost) as error:
                if self._stop(error):
                    return
                log.warning("a stream could not be finished: %s", error)
        partial, self.ts = self.ts, ""
        self._close()
        if partial:
            await self._poster.delete(self._place.channel, partial)
        await self._post(replies)

    async def _finish_stream(self, answer: Answer, extras: Extras) -> bool:
        """End the stream with the rest of the text and the buttons; False where what was streamed is not the text."""
        body = neutral(text_of(answer))
        if self._text != self._lead:
            if " ".join(self._text.split()) != " ".join(f"{self._lead}{body}".split()):
                await self._poster.calls("chat_stopStream", channel=self._place.channel, ts=self.ts)
                self._native = False
                return False
            pieces = [self._text[self._sent :]]
        else:
            first, *rest = split_markdown(body, BODY - len(self._lead))
            pieces = [self._text[self._sent :] + first, *rest]
        below: list[Block] = footer(answer, extras)
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
        return True

    async def _post(self, replies: tuple[Reply, ...]) -> None:
        await self._poster.post(self._place.channel, self._place.thread_ts, replies)

    def _card(self, id: str, title: str, status: str) -> None:
        known = self._cards.get(id)
        if known is None or known["status"] != status:
            title = title if len(title) <= TITLE else title[: TITLE - 1] + "…"
            self._cards[id] = {"type": "task_update", "id": id, "title": title, "status": status}
            self._fresh[id] = None

    def _unsent_cards(self) -> list[dict[str, Any]]:
        cards = [dict(self._cards[id]) for id in self._fresh]
        self._fresh.clear()
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
                if not self._stop(error):
                    log.warning("a stream broke: %s", error)
                    self._broken = True

    async def _flush(self) -> None:
        if not self.ts:
            await self._start()
        elif self._native:
            fresh, text = list(self._fresh), self._text[self._sent :]
            if not fresh and not text:
                return
            chunks = [*(dict(self._cards[id]) for id in fresh), *([_text(text)] if text else [])]
            await self._poster.calls(
                "chat_appendStream", patience_s=0, channel=self._place.channel, ts=self.ts, chunks=chunks
            )
            self._told(fresh, len(text))
        elif self._fresh or len(self._text) > self._sent:
            fresh, length = list(self._fresh), len(self._text) - self._sent
            # A refused or limited edit is only late: the next one shows the same.
            await self._poster.update(self._place.channel, self.ts, self._edited(), patience_s=0)
            self._told(fresh, length)

    async def _start(self) -> None:
        fresh, text = list(self._fresh), self._text
        kind = "im" if self._place.direct else "channel"
        if self._streams.may_start(kind):
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
                            chunks=[*([_text(text)] if text else []), *(dict(self._cards[id]) for id in fresh)],
                        )
                    ).get("ts", "")
                )
                self._native = self._counted = True
                self._streams.opened()
                self._told(fresh, len(text))
                return
            except SlackRefused as refused:
                if refused.error in UNSUPPORTED:
                    self._streams.unsupported[kind] = refused.error
                    log.warning("no native streams: %s; messages are edited instead", refused.error)
        [self.ts] = await self._poster.post(self._place.channel, self._place.thread_ts, [self._edited()])
        self._told(fresh, len(text))

    def _told(self, fresh: list[str], length: int) -> None:
        for id in fresh:
            self._fresh.pop(id, None)
        self._sent += length

    def _edited(self) -> Reply:
        """The message so far, for a workspace without native streams."""
        marks = {"complete": "✓", "in_progress": "…", "error": "✗"}
        cards = "\n".join(f"- {marks[card['status']]} {neutral(card['title'])}" for card in self._cards.values())
        text = f"{self._text.rstrip()}\n\n{cards}".lstrip()
        shown = fallback(self._text) or messages("working", self._language)
        return Reply(text=shown, blocks=tuple(map(markdown, split_markdown(text, BODY)[:1])))

    def _stop(self, error: Exception) -> bool:
        """Whether the reader pressed Stop; if so, nothing more is sent."""
        if isinstance(error, SlackRefused) and error.error == "stopped_by_user":
            self.stopped.set()
        return self.stopped.is_set()

    async def _still(self) -> None:
        """No flush is running and none will."""
        if self._flusher is not None:
            async with self._lock:  # never in the middle of a call: Slack would have what we do not know of
                self._flusher.cancel()
            await asyncio.wait({self._flusher})

    def _done(self) -> None:
        self._close()
        self.ts = ""

    def _close(self) -> None:
        if self._counted:
            self._streams.closed()
            self._counted = False
        self._native = False


def _text(text: str) -> dict[str, str]:
    return {"type": "markdown_text", "text": text}
