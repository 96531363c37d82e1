"""DingTalk's requests to a robot: signature and messages. Pure.

https://open.dingtalk.com/document/orgapp/receive-message
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator, Mapping

from trainmedic.ui.channels.channel import File, Json, as_map, as_maps
from trainmedic.ui.channels.markdown_channel import BotMessage, Reception, Refused, object_of

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
    return Reception(message=message_of(object_of(body)))


def signature(timestamp: str, secret: str) -> bytes:
    """HMAC-SHA256 of the app's secret over ``{timestamp}\\n{secret}``, in Base64. The body is not covered."""
    digest = hmac.new(secret.encode(), f"{timestamp}\n{secret}".encode(), hashlib.sha256).digest()
    return base64.b64encode(digest)


def message_of(event: Json) -> BotMessage | None:
    """The message of a request; None if it has none. DingTalk removes the robot's own mention."""
    id, webhook = str(event.get("msgId") or ""), str(event.get("sessionWebhook") or "")
    if not id or not webhook:
        return None
    kind, content, text = str(event.get("msgtype") or ""), as_map(event.get("content")), as_map(event.get("text"))
    replied = as_map(text.get("repliedMsg"))
    return BotMessage(
        id=id,
        chat=str(event.get("conversationId") or ""),
        user=str(event.get("senderStaffId") or event.get("senderId") or ""),
        text=str(text.get("content") or "").strip() if kind == "text" else _rich(content),
        direct=event.get("conversationType") == DIRECT,
        quoted=str(as_map(replied.get("content")).get("text") or "").strip(),
        files=tuple(_files(kind, content)),
        reply=webhook,
    )


def _rich(content: Json) -> str:
    return "".join(str(item.get("text") or "") for item in as_maps(content.get("richText"))).strip()


def _files(kind: str, content: Json) -> Iterator[File]:
    if kind == "file":
        name = str(content.get("fileName") or "file")
        yield File(name=name, source={"code": str(content.get("downloadCode") or "")})
    elif kind in MEDIA:
        yield File(name=kind, source={})
    for item in as_maps(content.get("richText")):
        if item.get("type") == "picture":
            yield File(name="picture", source={})
