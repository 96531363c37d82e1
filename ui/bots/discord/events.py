"""Discord's interactions: signature, and the message in a command. Pure.

https://discord.com/developers/docs/interactions/receiving-and-responding
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from trainmedic.ui.bots.channel import BotMessage, FileReference, Json, Reception, Refused

PING, COMMAND = 1, 2
"""Types of interactions."""
PONG, DEFERRED = 1, 5
"""Types of responses."""
SLASH, ON_MESSAGE = 1, 3
"""Types of commands: typed, or chosen in the menu of a message."""
TEXT, FILE = 3, 11
"""Types of options."""
MEDIA = ("image/", "video/", "audio/")
MAX_AGE_S = 300.0


def receive(headers: Mapping[str, str], body: bytes, key: Ed25519PublicKey, now: float) -> Reception:
    """Verify and parse a request; ``now`` in seconds since the epoch. Raises `Refused`."""
    timestamp = headers.get("x-signature-timestamp", "")
    try:
        key.verify(bytes.fromhex(headers.get("x-signature-ed25519", "")), timestamp.encode() + body)
        # Signed with the body, so a request that was overheard is not answered later.
        is_recent = abs(now - int(timestamp)) <= MAX_AGE_S
    except (InvalidSignature, ValueError):
        raise Refused(401, "wrong_signature") from None
    if not is_recent:
        raise Refused(401, "too_old")
    try:
        event = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused(400, "malformed") from None
    if not isinstance(event, dict):
        raise Refused(400, "malformed")
    if event.get("type") == PING:
        return Reception(body={"type": PONG})
    message = message_of(event)
    if message is None:
        raise Refused(400, "unknown_interaction")
    return Reception(body={"type": DEFERRED}, message=message)


def message_of(event: Json) -> BotMessage | None:
    """The message in a command; None for interactions that are none."""
    data, token = _map(event.get("data")), str(event.get("token") or "")
    if event.get("type") != COMMAND or not token or data.get("type") not in (SLASH, ON_MESSAGE):
        return None
    resolved = _map(data.get("resolved"))
    if data["type"] == ON_MESSAGE:
        target = _map(_map(resolved.get("messages")).get(str(data.get("target_id"))))
        text, files = str(target.get("content") or ""), _maps(target.get("attachments"))
    else:
        options = _maps(data.get("options"))
        text = "\n".join(str(option.get("value") or "") for option in options if option.get("type") == TEXT)
        sent = _map(resolved.get("attachments"))
        files = [_map(sent.get(str(option.get("value")))) for option in options if option.get("type") == FILE]
    user = _map(event.get("user") or _map(event.get("member")).get("user"))
    return BotMessage(
        id=str(event.get("id") or token),
        chat=str(event.get("channel_id") or ""),
        user=str(user.get("id") or ""),
        text=text.strip(),
        direct=not event.get("guild_id"),
        files=tuple(_references(files)),
        reply=f"{event.get('application_id')}/{token}",
    )


def _references(files: Sequence[Json]) -> Iterator[FileReference]:
    for file in files:
        kind = str(file.get("content_type") or "")
        name = str(file.get("filename") or "file")
        yield FileReference(name=name, key=str(file.get("url") or ""), readable=not kind.startswith(MEDIA))


def _map(value: Any) -> Json:
    return value if isinstance(value, Mapping) else {}


def _maps(value: Any) -> Sequence[Json]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
