"""Delivers notices: as our own signed JSON to an http(s) address, to everything else through Apprise.

The address is the operator's own setting, so internal hosts are allowed; redirects, which somebody else decides, are
not followed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol
from urllib.parse import urlsplit

from trainmedic.kb.errors import InvalidSettings
from trainmedic.kb.lazy import regex
from trainmedic.kb.retry import RETRYABLE, retry_after_s

if TYPE_CHECKING:
    from apprise import Apprise

SIGNATURE = "X-Trainmedic-Signature"
DELIVERY = "X-Trainmedic-Delivery"
EVENT = "X-Trainmedic-Event"
TIMEOUT_S = 10.0
_MENTION = regex(r"<(?=[!@#]|at\b|person\b)|@(?=everyone\b|here\b|channel\b|all\b)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """``body`` is for programs, ``title`` and ``text``, in Markdown, for people; nothing in it is unmasked.

    ``id`` is the same in every attempt to deliver it.
    """

    event: Literal["answered", "resolved", "diagnosed"]
    body: Mapping[str, object]
    title: str
    text: str
    id: str = field(default_factory=lambda: uuid.uuid4().hex)


class NotDelivered(Exception):
    """Why, without the address, which may be a secret. ``again``: another attempt may succeed, after ``after_s``."""

    def __init__(self, why: str, *, again: bool, after_s: float = 0.0) -> None:
        super().__init__(why)
        self.again = again
        self.after_s = after_s


class Destination(Protocol):
    name: str
    """For the log."""

    def send(self, notice: Notice) -> None:
        """Deliver it. Raises `NotDelivered`."""


def destination(url: str, secret: str = "", timeout_s: float = TIMEOUT_S) -> Destination:
    """The destination at ``url``; ``secret`` signs our own JSON. Raises `InvalidSettings`."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        raise InvalidSettings("the webhook's URL cannot be read") from None
    if parts.scheme in ("http", "https"):
        if not host:
            raise InvalidSettings("the webhook's URL has no host")
        return SignedJson(url, host, secret, timeout_s)
    return ByApprise(url)


class SignedJson:
    def __init__(self, url: str, name: str, secret: str, timeout_s: float) -> None:
        self.name = name
        self._url, self._secret, self._timeout_s = url, secret, timeout_s

    def send(self, notice: Notice) -> None:
        import httpx

        body = json.dumps(notice.body, ensure_ascii=False).encode()
        headers = {"Content-Type": "application/json", EVENT: notice.event, DELIVERY: notice.id}
        if self._secret:
            headers[SIGNATURE] = signature(self._secret, int(time.time()), body)
        options = {"content": body, "headers": headers, "timeout": self._timeout_s, "follow_redirects": False}
        try:
            # Streamed: the response's body is never read, whatever its size.
            with httpx.stream("POST", self._url, **options) as response:  # type: ignore[arg-type]
                status, asked_s = response.status_code, retry_after_s(response.headers)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise NotDelivered(type(error).__name__, again=True) from None
        if not 200 <= status < 300:
            raise NotDelivered(f"HTTP {status}", again=status in RETRYABLE, after_s=asked_s)


class ByApprise:
    """Any service that the package apprise knows, by its URL: ``slack://…``, ``dingtalk://…``, ``mailto://…``."""

    def __init__(self, url: str) -> None:
        self.name = urlsplit(url).scheme
        self._apprise = _loaded(url)

    def send(self, notice: Notice) -> None:
        import apprise

        kinds = {"resolved": apprise.NotifyType.SUCCESS, "diagnosed": apprise.NotifyType.FAILURE}
        sent = self._apprise.notify(
            title=inert(notice.title),
            body=inert(notice.text),
            notify_type=kinds.get(notice.event, apprise.NotifyType.INFO),
            body_format=apprise.NotifyFormat.MARKDOWN,
        )
        if not sent:
            raise NotDelivered("refused, or not reached", again=True)


def _loaded(url: str) -> Apprise:
    try:
        import apprise
    except ImportError:
        raise InvalidSettings(
            "such a webhook needs the package apprise", hint="pip install 'trainmedic[notify]', or an http(s) URL"
        ) from None
    # Nothing is kept on disk, and no plugins or configuration are loaded from elsewhere.
    asset = apprise.AppriseAsset(
        app_id="trainmedic",
        app_desc="trainmedic",
        app_url="",
        async_mode=False,
        http_redirects=False,
        storage_mode=apprise.PersistentStoreMode.MEMORY,
    )
    server = apprise.Apprise.instantiate(url, asset=asset)
    if server is None:
        raise InvalidSettings("the webhook's URL is neither http(s) nor one that apprise knows")
    server.redirects = False  # the URL itself could ask for them
    server.overflow_mode = apprise.OverflowMode.SPLIT
    return apprise.Apprise(server, asset=asset)


def signature(secret: str, timestamp: int, body: bytes) -> str:
    """The header's value: ``t=<unix seconds>,v1=<hex>``, HMAC-SHA256 over the timestamp, a dot and the body."""
    digest = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={timestamp},v1={digest}"


def inert(text: str) -> str:
    """Text in which no chat service sees a mention: a pasted ``<!channel>`` would notify a whole group."""
    return _MENTION.sub(lambda mark: f"{mark[0]}\u200b", text)
