"""Posts an event to one URL for every answer, and for every answer that solved its question.

Never delays or fails either. Events hold ids, the verdict, titles of cases and a link, and nothing of the user's text.
The URL is the operator's own setting, so internal hosts are allowed; redirects, which somebody else decides, are not
followed.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import time
import uuid
from collections import deque
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from tenacity import AsyncRetrying, retry_if_exception_type, retry_if_result

from trainmedic.kb.errors import InvalidSettings
from trainmedic.kb.messages import load_messages
from trainmedic.kb.retry import RETRYABLE, backoff, last_outcome, sleep_unless
from trainmedic.service.answer.schema import Answer
from trainmedic.service.observers.formats import (
    CHARACTERS,
    Alert,
    Format,
    address_of,
    alertmanager_alerts,
    format_of,
    message,
    pagerduty_event,
)
from trainmedic.service.settings import Settings
from trainmedic.service.storage.history import Feedback

if TYPE_CHECKING:
    import httpx

SIGNATURE = "X-Trainmedic-Signature"
DELIVERY = "X-Trainmedic-Delivery"
EVENT = "X-Trainmedic-Event"
LONGEST_WAIT_S = 60.0
log = logging.getLogger("trainmedic.webhook")
messages = load_messages("trainmedic.service.observers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event. ``id`` is the same in every attempt to deliver it."""

    event: Literal["answered", "resolved"]
    answer_id: str
    verdict: str
    causes: tuple[Mapping[str, str], ...]
    link: str | None
    at: str
    language: str = "en"
    id: str = field(default_factory=lambda: uuid.uuid4().hex)

    def body(self, kind: Format = "json", url: str = "") -> bytes:
        """The body of the request to a receiver of this kind at ``url``."""
        names = ("event", "answer_id", "verdict", "causes", "link", "at")
        value: object = {name: getattr(self, name) for name in names}
        if kind in CHARACTERS:
            value = message(kind, self.text)
        elif kind == "pagerduty":
            value = pagerduty_event(url, self._alert())
        elif kind == "alertmanager":
            value = alertmanager_alerts(self._alert(), self.at)
        return json.dumps(value, ensure_ascii=False).encode()

    @property
    def text(self) -> str:
        """The event in a few words of Markdown: the verdict, the first cause and the link."""
        link = f"[{messages('open', self.language)}]({self.link})" if self.link else ""
        return " · ".join(part for part in (self._summary(bold="**"), link) if part)

    def _summary(self, bold: str = "") -> str:
        verdict = messages(f"verdict.{self.verdict}", self.language)
        cause = f"{bold}{self.causes[0]['title']}{bold}" if self.causes else verdict
        return f"{messages(f'event.{self.event}', self.language)} · {cause}"

    def _alert(self) -> Alert:
        names = {"case": self.causes[0]["case_id"]} if self.causes else {}
        return Alert(
            key=self.answer_id,
            summary=self._summary(),
            source="trainmedic",
            severity="info",
            resolved=self.event == "resolved",
            link=self.link,
            labels={"verdict": self.verdict, **names},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Bounds on the attempts to reach a receiver, on the queue, and on the last deliveries at the end."""

    timeout_s: float = 10.0
    attempts: int = 6
    first_delay_s: float = 1.0
    queue: int = 500
    farewell_s: float = 2.0


def signature(secret: str, timestamp: int, body: bytes) -> str:
    """The header's value: ``t=<unix seconds>,v1=<hex>``, HMAC-SHA256 over the timestamp, a dot and the body."""
    digest = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={timestamp},v1={digest}"


class Webhook:
    """An `Observer` that queues events from any thread and sends them in order while `running` is entered.

    Raises `InvalidSettings` unless the URL is http(s).
    """

    def __init__(
        self,
        url: str,
        secret: str = "",
        *,
        public_url: str = "",
        policy: RetryPolicy | None = None,
        kind: Format | None = None,
    ) -> None:
        """``kind`` is by default the format that the URL shows."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidSettings("webhook_url must be an http(s) URL")
        self._url = url
        self._kind: Format = kind or format_of(url)
        self._host = parts.hostname  # for the log: the rest of such an address is often a secret
        self._secret = secret
        self._public_url = public_url.rstrip("/")
        self._policy = policy or RetryPolicy()
        self._waiting: deque[Event] = deque()
        self._deleted: set[str] = set()
        """Answers whose waiting events are not sent any more."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake = asyncio.Event()
        self._closing = asyncio.Event()
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
        if self._waiting:
            self._deleted.update(answer_ids)

    def _offer(
        self,
        event: Literal["answered", "resolved"],
        answer_id: str,
        verdict: str,
        causes: Sequence[Mapping[str, str]],
        language: str,
    ) -> None:
        if len(self._waiting) >= self._policy.queue:
            self._drop("too many events wait")
            return
        link = f"{self._public_url}/?answer={answer_id}" if self._public_url else None
        at = datetime.now(UTC).isoformat(timespec="seconds")
        self._waiting.append(
            Event(
                event=event,
                answer_id=answer_id,
                verdict=verdict,
                causes=tuple(causes),
                link=link,
                at=at,
                language=language,
            )
        )
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # the loop has just ended
                loop.call_soon_threadsafe(self._wake.set)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Send events inside; at the end, try the queued ones once more for up to ``farewell_s``."""
        import httpx

        self._loop = asyncio.get_running_loop()
        self._closing.clear()
        self._wake.set()
        timeout = httpx.Timeout(self._policy.timeout_s)
        async with httpx.AsyncClient(timeout=timeout, follow_redirects=False) as client:
            task = asyncio.create_task(self._work(client), name="webhook")
            try:
                yield
            finally:
                self._loop = None
                self._closing.set()
                self._wake.set()
                await asyncio.wait([task], timeout=self._policy.farewell_s)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                if self._waiting:
                    self._drop("the service stops", len(self._waiting))
                    self._waiting.clear()

    async def _work(self, client: httpx.AsyncClient) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                # Taken out only when done with, so that one that is cut short is counted as dropped.
                if self._waiting[0].answer_id not in self._deleted:
                    await self._deliver(client, self._waiting[0])
                self._waiting.popleft()
            self._deleted.clear()
            if self._closing.is_set():
                return

    async def _deliver(self, client: httpx.AsyncClient, event: Event) -> None:
        """Send one event, repeatedly if that may help. Failures of any kind must not reach the service."""
        retrying = AsyncRetrying(
            stop=lambda state: (
                state.attempt_number >= self._policy.attempts
                or self._closing.is_set()
                or event.answer_id in self._deleted
            ),
            wait=backoff(self._policy.first_delay_s, LONGEST_WAIT_S),
            retry=retry_if_exception_type(Exception) | retry_if_result(lambda r: r.status_code in RETRYABLE),
            retry_error_callback=last_outcome,
            sleep=sleep_unless(self._closing),
        )
        try:
            response: httpx.Response = await retrying(self._send, client, event)
        except Exception as error:
            self._drop(type(error).__name__)
            return
        if response.is_success:
            self.delivered += 1
        else:
            self._drop(f"status {response.status_code}")

    async def _send(self, client: httpx.AsyncClient, event: Event) -> httpx.Response:
        body = event.body(self._kind, self._url)
        headers = {"Content-Type": "application/json", EVENT: event.event, DELIVERY: event.id}
        if self._secret:
            headers[SIGNATURE] = signature(self._secret, int(time.time()), body)
        # Streamed: the receiver's body is never read, whatever its size.
        async with client.stream("POST", address_of(self._kind, self._url), content=body, headers=headers) as response:
            return response

    def _drop(self, why: str, count: int = 1) -> None:
        self.dropped += count
        log.warning("webhook at %s: %d event(s) dropped: %s", self._host, count, why)


def webhook_of(settings: Settings) -> Webhook | None:
    """The webhook that the settings name, or None. Raises `InvalidSettings`."""
    url = settings.webhook_url.get_secret_value()
    if not url:
        return None
    return Webhook(
        url,
        settings.webhook_secret.get_secret_value(),
        public_url=settings.public_url,
        kind=settings.webhook_format or None,
    )
