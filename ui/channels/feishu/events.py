"""Feishu's requests: decryption, signature, challenge, and messages of the event schema 2.0. Pure.

https://open.feishu.cn/document/server-docs/event-subscription-guide/event-subscription-configure-/encrypt-key-encryption-configuration-case
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

from trainmedic.kb.fences import fence_around
from trainmedic.ui.channels.channel import File, Json
from trainmedic.ui.channels.markdown_channel import BotMessage, Reception, Refused

RECEIVED = "im.message.receive_v1"
MEDIA = ("image", "audio", "media", "sticker")
"""Message types that hold no text; their files have no ``source``."""


def receive(headers: Mapping[str, str], body: bytes, encrypt_key: str, verification_token: str) -> Reception:
    """Verify and parse a request. Raises `Refused`.

    The request that verifies the address is not signed; being encrypted with our key proves its origin.
    """
    outer = _object(body)
    encrypted = outer.get("encrypt")
    if not isinstance(encrypted, str):
        raise Refused(401, "not_encrypted")
    event = _object(decrypted(encrypted, encrypt_key))
    header = event.get("header")
    token = header.get("token") if isinstance(header, Mapping) else event.get("token")
    if verification_token and not hmac.compare_digest(str(token).encode(), verification_token.encode()):
        raise Refused(401, "wrong_token")
    if event.get("type") == "url_verification":
        return Reception(body={"challenge": str(event.get("challenge", ""))})
    if not hmac.compare_digest(signature(headers, body, encrypt_key), headers.get("x-lark-signature", "").encode()):
        raise Refused(401, "wrong_signature")
    return Reception(message=message_of(event))


def signature(headers: Mapping[str, str], body: bytes, encrypt_key: str) -> bytes:
    """SHA-256 over timestamp, nonce, key and body, as hexadecimal digits."""
    parts = (headers.get("x-lark-request-timestamp", ""), headers.get("x-lark-request-nonce", ""), encrypt_key)
    return hashlib.sha256("".join(parts).encode("utf-8", "replace") + body).hexdigest().encode()


def decrypted(encrypted: str, encrypt_key: str) -> bytes:
    """AES-256-CBC with the SHA-256 of the key; the first block is the initialisation vector. Raises `Refused`."""
    key = hashlib.sha256(encrypt_key.encode()).digest()
    try:
        content = base64.b64decode(encrypted, validate=True)
        decryptor = Cipher(algorithms.AES(key), modes.CBC(content[:16])).decryptor()
        padded = decryptor.update(content[16:]) + decryptor.finalize()
        unpadder = PKCS7(128).unpadder()
        return unpadder.update(padded) + unpadder.finalize()
    except ValueError:
        raise Refused(401, "wrong_encryption") from None


def message_of(event: Json) -> BotMessage | None:
    """The message of an event; None if it is of another kind, or written by an app."""
    header, body = _map(event.get("header")), _map(event.get("event"))
    message, sender = _map(body.get("message")), _map(body.get("sender"))
    # Messages of apps are ignored, or two bots in one chat would answer each other forever.
    if header.get("event_type") != RECEIVED or sender.get("sender_type") != "user" or not message.get("message_id"):
        return None
    content, kind = str(message.get("content") or ""), str(message.get("message_type") or "")
    id = str(message["message_id"])
    return BotMessage(
        id=id,
        chat=str(message.get("chat_id") or ""),
        user=str(_map(sender.get("sender_id")).get("open_id") or ""),
        text=text_of(kind, content),
        direct=message.get("chat_type") == "p2p",
        thread=str(message.get("root_id") or message.get("parent_id") or ""),
        files=tuple(files_of(kind, content, id)),
        reply=id,
        mentions={
            str(item["key"]): (str(_map(item.get("id")).get("open_id") or ""), str(item.get("name") or ""))
            for item in _maps(message.get("mentions"))
            if item.get("key")
        },
    )


def item_of(item: Json) -> BotMessage:
    """A message as the API returns it, where ``body.content`` holds the text."""
    content, kind = str(_map(item.get("body")).get("content") or ""), str(item.get("msg_type") or "")
    id = str(item.get("message_id") or "")
    return BotMessage(
        id=id,
        chat=str(item.get("chat_id") or ""),
        user=str(_map(item.get("sender")).get("id") or ""),
        text=text_of(kind, content),
        direct=False,
        files=tuple(files_of(kind, content, id)),
        mentions={
            str(mention["key"]): (str(mention.get("id") or ""), str(mention.get("name") or ""))
            for mention in _maps(item.get("mentions"))
            if mention.get("key")
        },
    )


def text_of(kind: str, content: str) -> str:
    """The typed text; rich text as Markdown. Empty for other kinds."""
    fields = _loaded(content)
    if kind == "text":
        return str(fields.get("text") or "").strip()
    if kind != "post":
        return ""
    if not isinstance(fields.get("content"), list):  # one post for each language
        fields = next((part for part in fields.values() if isinstance(part, Mapping)), {})
    lines = [str(fields.get("title") or "")]
    for paragraph in fields.get("content") or ():
        lines.append("".join(_piece(item) for item in _maps(paragraph)))
    return "\n".join(lines).strip()


def files_of(kind: str, content: str, message: str) -> Iterator[File]:
    fields = _loaded(content)
    if kind == "file":
        name = str(fields.get("file_name") or "file")
        yield File(name=name, source={"key": str(fields.get("file_key") or ""), "message": message})
    elif kind in MEDIA:
        yield File(name=kind, source={})
    elif kind == "post":
        for paragraph in fields.get("content") or ():
            for item in _maps(paragraph):
                if item.get("tag") in ("img", "media"):
                    yield File(name=str(item["tag"]), source={})


def _piece(item: Json) -> str:
    tag, text = item.get("tag"), str(item.get("text") or "")
    if tag == "code_block":
        ticks = fence_around(text)
        return f"\n{ticks}\n{text.rstrip()}\n{ticks}\n"
    if tag == "a":
        return text if text == item.get("href") else f"{text} {item.get('href') or ''}".strip()
    # A mention holds its mark here, and its name among the mentions.
    return str(item.get("user_id") or "") if tag == "at" else text


def _object(body: bytes) -> Json:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused(400, "malformed") from None
    if not isinstance(value, dict):
        raise Refused(400, "malformed")
    return value


def _loaded(content: str) -> Json:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _map(value: Any) -> Json:
    return value if isinstance(value, Mapping) else {}


def _maps(value: Any) -> Sequence[Json]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
