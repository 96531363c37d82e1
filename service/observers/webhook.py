"""Notifies one destination of every answer, and of every answer that solved its question.

Never delays or fails either. Notices hold ids, the verdict, titles of cases and a link, and nothing of the user's text.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Condition, Event, Thread
from typing import Any, Literal

from tenacity import RetryCallState, Retrying, retry_if_exception
from tenacity.nap import sleep_using_event

from trainmedic.kb.messages import load_messages
from trainmedic.kb.retry import backoff
from trainmedic.service.answer.schema import Answer
from trainmedic.service.observers.destination import NotDelivered, Notice, destination
from trainmedic.service.settings import Settings
from trainmedic.service.storage.history import Feedback

LONGEST_WAIT_S = 60.0
log = logging.getLogger("trainmedic.webhook")
messages = load_messages("trainmedic.service.observers")
Causes = Sequence[Mapping[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Bounds on the attempts to reach a receiver, on the queue, and on the last deliveries at the end."""

    timeout_s: float = 10.0
    attempts: int = 6
    first_delay_s: float = 1.0
    queue: int = 500
    farewell_s: float = 2.0


class Webhook:
    """An `Observer` that queues notices from any thread, and sends them in order while `running` is entered.

    Raises `InvalidSettings` for a URL that cannot be posted to.
    """

    def __init__(self, url: str, secret: str = "", *, public_url: str = "", policy: RetryPolicy | None = None) -> None:
        self._policy = policy or RetryPolicy()
        self._destination = destination(url, secret, self._policy.timeout_s)
        self._public_url = public_url.rstrip("/")
        self._changed = Condition()
        self._waiting: deque[tuple[str, Notice]] = deque()
        self._sending = ""
        """The answer whose notice is on its way; empty if it was deleted meanwhile."""
        self._closing = Event()
        self.delivered = 0
        self.dropped = 0

    def on_answer(self, answer: Answer) -> None:
        """Send ``answered``."""
        causes = [{"case_id": c.case_id, "title": c.title, "confidence": c.confidence} for c in answer.causes]
        self._offer("answered", answer.id, answer.verdict, causes, answer.language)

    def on_feedback(self, feedback: Feedback, previous: Feedback | None, answer: Mapping[str, Any]) -> None:
        """Send ``resolved`` when an answer is first said to have solved its question."""
        if feedback.reaction != "resolved" or (previous is not None and previous.reaction == "resolved"):
            return
        names = ("case_id", "title", "confidence")
        causes = [{name: str(cause.get(name, "")) for name in names} for cause in answer.get("causes", ())]
        language = "zh" if answer.get("language") == "zh" else "en"
        self._offer("resolved", feedback.answer_id, str(answer.get("verdict", "")), causes, language)

    def on_deletion(self, answer_ids: Collection[str]) -> None:
        """Send nothing more about these answers."""
        with self._changed:
            self._waiting = deque(item for item in self._waiting if item[0] not in answer_ids)
            if self._sending in answer_ids:
                self._sending = ""

    def _offer(
        self, event: Literal["answered", "resolved"], answer_id: str, verdict: str, causes: Causes, language: str
    ) -> None:
        link = f"{self._public_url}/?answer={answer_id}" if self._public_url else None
        at = datetime.now(UTC).isoformat(timespec="seconds")
        body = {"event": event, "answer_id": answer_id, "verdict": verdict, "causes": causes, "link": link, "at": at}
        cause = f"**{causes[0]['title']}**" if causes else messages(f"verdict.{verdict}", language)
        text = f"{cause} · [{messages('open', language)}]({link})" if link else cause
        notice = Notice(event=event, body=body, title=messages(f"event.{event}", language), text=text)
        with self._changed:
            if len(self._waiting) >= self._policy.queue:
                self._drop("too many events wait")
                return
            self._waiting.append((answer_id, notice))
            self._changed.notify()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Send notices inside; at the end, try the queued ones once more for up to ``farewell_s``."""
        self._closing.clear()
        # A daemon: a receiver that never answers must not keep the process alive.
        thread = Thread(target=self._work, name="webhook", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._closing.set()
            with self._changed:
                self._changed.notify()
            await asyncio.to_thread(thread.join, self._policy.farewell_s)
            with self._changed:
                if left := len(self._waiting) + bool(self._sending):
                    self._drop("the service stops", left)
                self._waiting.clear()
                self._sending = ""

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing.is_set())
                if not self._waiting:
                    return
                answer_id, notice = self._waiting.popleft()
                self._sending = answer_id
            self._deliver(answer_id, notice)

    def _deliver(self, answer_id: str, notice: Notice) -> None:
        """Send one notice, repeatedly if that may help. Failures of any kind must not reach the service."""
        retrying = Retrying(
            stop=lambda state: (
                state.attempt_number >= self._policy.attempts or self._closing.is_set() or self._sending != answer_id
            ),
            wait=self._wait_s,
            retry=retry_if_exception(lambda error: isinstance(error, NotDelivered) and error.again),
            sleep=sleep_using_event(self._closing),
            reraise=True,
        )
        why = ""
        try:
            retrying(self._destination.send, notice)
        except Exception as error:
            why = str(error) if isinstance(error, NotDelivered) else type(error).__name__
        with self._changed:
            if self._sending != answer_id:  # deleted, or given up at the end
                return
            self._sending = ""
            if why:
                self._drop(why)
            else:
                self.delivered += 1

    def _wait_s(self, state: RetryCallState) -> float:
        """Doubling, and at least as long as the receiver asks for."""
        error = state.outcome.exception() if state.outcome is not None else None
        asked_s = error.after_s if isinstance(error, NotDelivered) else 0.0
        doubling_s = backoff(self._policy.first_delay_s, LONGEST_WAIT_S)(state)
        return min(max(doubling_s, asked_s), LONGEST_WAIT_S)

    def _drop(self, why: str, count: int = 1) -> None:
        self.dropped += count
        log.warning("webhook at %s: %d event(s) dropped: %s", self._destination.name, count, why)


def webhook_of(settings: Settings) -> Webhook | None:
    """The webhook that the settings name, or None. Raises `InvalidSettings`."""
    url = settings.webhook.url.get_secret_value()
    secret = settings.webhook.secret.get_secret_value()
    return Webhook(url, secret, public_url=settings.public_url) if url else None
