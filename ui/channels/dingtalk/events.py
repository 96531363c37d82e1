"""DingTalk's requests to a robot: signature and messages. Pure.

https://open.dingtalk.com/document/orgapp/receive-message
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainmedic.ui.channels.channel import File, Json
from trainmedic.ui.channels.markdown_channel import BotMessage, Reception, Refused

MAX_AGE_S = 3_600.0
DIRECT = "1"
MEDIA = ("picture", "audio", "video")
"""Message types that hold no text; their files have no ``source``."""


def receive(headers: Mapping[str, str], body: bytes, secret: str, now: float) -> Reception:
    """Verify and parse a request; ``now`` in seconds since the epoch. Raises `Refused`."""
    timestamp, sign = headers.get("timestamp", ""), headers.get("sign", "")
    # Checked first: `int` of a Unicode digit string succeeds.
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 16):
        raise Refused(401, "unsigned")
    if not hmac.compare_digest(signature(timestamp, secret), sign.encode("utf-8", "replace")):
        raise Refused(401, "wrong_signature")
    if abs(now - int(timestamp) / 1000) > MAX_AGE_S:
        raise Refused(401, "too_old")
    try:
        event = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused(400, "malformed") from None
    if not isinstance(event, dict):
        raise Refused(400, "malformed")
    return Reception(message=message_of(event))


def signature(timestamp: str, secret: str) -> bytes:
    """HMAC-SHA256 of the app's secret over ``{timestamp}\\n{secret}``, in Base64. The body is not covered."""
    digest = hmac.new(secret.encode(), f"{timestamp}\n{secret}".encode(), hashlib.sha256).digest()
    return base64.b64encode(digest)


def message_of(event: Json) -> BotMessage | None:
    """The message of a request; None if it has none. DingTalk removes the robot's own mention."""
    id, webhook = str(event.get("msgId") or ""), str(event.get("sessionWebhook") or "")
    if not id or not webhook:
        return None
    kind, content, text = str(event.get("msgtype") or ""), _map(event.get("content")), _map(event.get("text"))
    replied = _map(text.get("repliedMsg"))
    return BotMessage(
        id=id,
        chat=str(event.get("conversationId") or ""),
        user=str(event.get("senderStaffId") or event.get("senderId") or ""),
        text=str(text.get("content") or "").strip() if kind == "text" else _rich(content),
        direct=event.get("conversationType") == DIRECT,
        quoted=str(_map(replied.get("content")).get("text") or "").strip(),
        files=tuple(_files(kind, content)),
        reply=webhook,
    )


def _rich(content: Json) -> str:
    return "".join(str(item.get("text") or "") for item in _maps(content.get("richText"))).strip()


def _files(kind: str, content: Json) -> Iterator[File]:
    if kind == "file":
        name = str(content.get("fileName") or "file")
        yield File(name=name, source={"code": str(content.get("downloadCode") or "")})
    elif kind in MEDIA:
        yield File(name=kind, source={})
    for item in _maps(content.get("richText")):
        if item.get("type") == "picture":
            yield File(name="picture", source={})


def _map(value: Any) -> Json:
    return value if isinstance(value, Mapping) else {}


def _maps(value: Any) -> Sequence[Json]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
