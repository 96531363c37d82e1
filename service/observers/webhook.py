"""Tells one address of every answer, and of every answer that solved its question. Never delays or fails either.

What is sent holds nothing that was pasted: ids, the verdict, titles of cases and a link. The address is the operator's
own setting, so any host may be named, internal ones too; redirects are not followed, since those are somebody else's.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import random
import time
import uuid
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from trainmedic.kb.errors import InvalidSettings
from trainmedic.service.answer import Answer
from trainmedic.service.history import Feedback
from trainmedic.service.settings import Settings

if TYPE_CHECKING:
    import httpx

SIGNATURE = "X-Trainmedic-Signature"
DELIVERY = "X-Trainmedic-Delivery"
EVENT = "X-Trainmedic-Event"
AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which it may go well another time."""
LONGEST_WAIT_S = 60.0
log = logging.getLogger("trainmedic.webhook")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing to tell. ``id`` stays the same however often it is sent."""

    event: Literal["answered", "resolved"]
    answer_id: str
    verdict: str
    causes: tuple[Mapping[str, str], ...]
    link: str | None
    at: str
    id: str = field(default_factory=lambda: uuid.uuid4().hex)

    def body(self) -> bytes:
        """The JSON that is sent."""
        names = ("event", "answer_id", "verdict", "causes", "link", "at")
        return json.dumps({name: getattr(self, name) for name in names}, ensure_ascii=False).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds to wait for a receiver, how often to try, and how many events may wait meanwhile."""

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
    """Takes events from any thread at any time; sends them one after the other while `running` is entered.

    Raises `InvalidSettings` for an address that is none.
    """

    def __init__(self, url: str, secret: str = "", *, public_url: str = "", patience: Patience | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidSettings("webhook_url is no http or https address")
        self._url = url
        self._host = parts.hostname  # for the log: the rest of such an address is often a secret
        self._secret = secret
        self._public_url = public_url.rstrip("/")
        self._patience = patience or Patience()
        self._waiting: deque[Event] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake = asyncio.Event()
        self._closing = asyncio.Event()
        self.delivered = 0
        self.dropped = 0

    def on_answer(self, answer: Answer) -> None:
        """Send ``answered``."""
        causes = [{"case_id": c.case_id, "title": c.title, "confidence": c.confidence} for c in answer.causes]
        self._offer("answered", answer.id, answer.verdict, causes)

    def on_feedback(self, feedback: Feedback, previous: Feedback | None, answer: Mapping[str, Any]) -> None:
        """Send ``resolved`` when an answer is first said to have solved its question."""
        if feedback.reaction != "resolved" or (previous is not None and previous.reaction == "resolved"):
            return
        names = ("case_id", "title", "confidence")
        causes = [{name: str(cause.get(name, "")) for name in names} for cause in answer.get("causes", ())]
        self._offer("resolved", feedback.answer_id, str(answer.get("verdict", "")), causes)

    def _offer(
        self, event: Literal["answered", "resolved"], answer_id: str, verdict: str, causes: Sequence[Mapping[str, str]]
    ) -> None:
        if len(self._waiting) >= self._patience.queue:
            self._drop("too many events wait")
            return
        link = f"{self._public_url}/?answer={answer_id}" if self._public_url else None
        at = datetime.now(UTC).isoformat(timespec="seconds")
        self._waiting.append(
            Event(event=event, answer_id=answer_id, verdict=verdict, causes=tuple(causes), link=link, at=at)
        )
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # the loop has just ended
                loop.call_soon_threadsafe(self._wake.set)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Events are sent inside. At the end what still waits is tried once more, for a moment."""
        import httpx

        self._loop = asyncio.get_running_loop()
        self._closing.clear()
        self._wake.set()
        timeout = httpx.Timeout(self._patience.timeout_s)
        async with httpx.AsyncClient(timeout=timeout, follow_redirects=False) as client:
            task = asyncio.create_task(self._work(client), name="webhook")
            try:
                yield
            finally:
                self._loop = None
                self._closing.set()
                self._wake.set()
                await asyncio.wait([task], timeout=self._patience.farewell_s)
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
                await self._deliver(client, self._waiting[0])
                self._waiting.popleft()
            if self._closing.is_set():
                return

    async def _deliver(self, client: httpx.AsyncClient, event: Event) -> None:
        """Send one event, again and again while that may help."""
        wait_s, problem = 0.0, ""
        for attempt in range(self._patience.attempts):
            if attempt and not await self._pause(wait_s):
                break
            try:
                retry_after, problem = await self._send(client, event)
            except Exception as error:  # the receiver's trouble, of whatever kind, is none of an answer's
                retry_after, problem = None, type(error).__name__
            if not problem:
                self.delivered += 1
                return
            if retry_after is not None and retry_after < 0:
                break
            wait_s = min(self._patience.first_delay_s * 2**attempt, LONGEST_WAIT_S) * random.uniform(0.75, 1.25)
            wait_s = min(max(wait_s, retry_after or 0.0), LONGEST_WAIT_S)
        self._drop(problem)

    async def _send(self, client: httpx.AsyncClient, event: Event) -> tuple[float | None, str]:
        """One attempt: what went wrong (empty: nothing), and in how many seconds to try again; below 0: never."""
        body = event.body()
        headers = {"Content-Type": "application/json", EVENT: event.event, DELIVERY: event.id}
        if self._secret:
            headers[SIGNATURE] = signature(self._secret, int(time.time()), body)
        async with client.stream("POST", self._url, content=body, headers=headers) as response:
            if response.is_success:
                return None, ""
            if response.status_code not in AGAIN:
                return -1.0, f"status {response.status_code}"
            after = response.headers.get("retry-after", "")
            return float(after) if after.isascii() and after.isdigit() else None, f"status {response.status_code}"

    async def _pause(self, seconds: float) -> bool:
        """Wait; False where the service stops meanwhile."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)
        return not self._closing.is_set()

    def _drop(self, why: str, count: int = 1) -> None:
        self.dropped += count
        log.warning("webhook at %s: %d event(s) dropped: %s", self._host, count, why)


def webhook_of(settings: Settings) -> Webhook | None:
    """The webhook that the settings name, or None. Raises `InvalidSettings`."""
    url = settings.webhook_url.get_secret_value()
    if not url:
        return None
    return Webhook(url, settings.webhook_secret.get_secret_value(), public_url=settings.public_url)
