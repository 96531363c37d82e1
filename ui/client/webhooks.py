"""Verifies and decodes requests of the service's webhook."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Mapping
from dataclasses import dataclass

from trainmedic.ui.client.failure import ServiceError
from trainmedic.ui.client.models import decode

SIGNATURE = "x-trainmedic-signature"
DELIVERY = "x-trainmedic-delivery"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventCause:
    """A candidate cause of the answer."""

    case_id: str
    title: str = ""
    confidence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookEvent:
    """``event`` is ``answered`` or ``resolved``; ``at`` an ISO 8601 time; ``link`` None without a public address."""

    event: str
    answer_id: str
    verdict: str = ""
    causes: tuple[EventCause, ...] = ()
    link: str | None = None
    at: str = ""


def verified(
    headers: Mapping[str, str], body: bytes, secret: str, *, max_age_s: float = 300.0, now_s: float | None = None
) -> WebhookEvent:
    """The event of one request, from its headers and its raw body.

    Raises `ServiceError` ``bad_signature`` unless it was signed with ``secret`` within ``max_age_s``. A delivery may
    be sent twice, then with the same header ``X-Trainmedic-Delivery``.
    """
    lower = {name.lower(): value for name, value in headers.items()}
    parts = dict(part.strip().partition("=")[::2] for part in lower.get(SIGNATURE, "").split(","))
    stamp, digest = parts.get("t", ""), parts.get("v1", "")
    expected = hmac.new(secret.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    now = time.time() if now_s is None else now_s
    fresh = stamp.isascii() and stamp.isdigit() and abs(now - int(stamp)) <= max_age_s
    if not secret or not fresh or not hmac.compare_digest(digest.encode(), expected.encode()):
        raise ServiceError("bad_signature", "not signed with this secret, or too long ago")
    try:
        return decode(WebhookEvent, body.decode())
    except ValueError as error:
        raise ServiceError("bad_response", f"not an event of trainmedic: {error}") from error
