"""Chats of Feishu or Lark, as its API lists their messages, in JSON or JSONL files; each thread is a discussion.

What is read is the ``items`` of ``GET /open-apis/im/v1/messages``
(https://open.feishu.cn/document/server-docs/im-v1/message/list): texts and rich texts, joined by ``root_id``. Documents
are exported as DOCX or Markdown: the source "folder" reads those.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainmedic.ingest.items import Discussion, Failure, Item, Message, Options, iso_time, number_of, shortened
from trainmedic.ingest.read.files import File, files

SUFFIXES = (".json", ".jsonl", ".ndjson")
MAX_BYTES = 256 * 1024 * 1024
LONGEST_TITLE = 80


def read(options: Options) -> Iterator[Item]:
    """The threads with at least one reply, in the order of their first messages."""
    for file in files(options.location):
        if isinstance(file, Failure):
            yield file
            continue
        if file.suffix not in SUFFIXES:
            continue
        messages: list[Mapping[str, Any]] = []
        failed = False
        for part in _parts(file):
            found = part if isinstance(part, Failure) else _items(*part)
            if isinstance(found, Failure):
                failed = True
                yield found
            else:
                messages += found
        if not messages and not failed:
            yield Failure(origin=file.origin, reason="no messages of a chat in it")
        yield from _threads(file, messages)


def text_of(item: Mapping[str, Any]) -> str:
    """The text of a message; empty for pictures, files, cards and what is deleted."""
    body = item.get("body")
    content = body.get("content") if isinstance(body, Mapping) else item.get("content")
    try:
        data = json.loads(content) if isinstance(content, str) else content
    except (ValueError, RecursionError):
        return str(content or "").strip()
    if item.get("deleted") or not isinstance(data, Mapping):
        return ""
    if isinstance(data.get("text"), str):
        return _without_mentions(data["text"], item).strip()
    post = data if "content" in data else next((part for part in data.values() if isinstance(part, Mapping)), {})
    written = post.get("content")
    lines = [str(post.get("title") or "")]
    lines += [_line(elements) for elements in written] if isinstance(written, list) else []
    return "\n".join(line for line in lines if line.strip()).strip()


def _parts(file: File) -> Iterator[tuple[str, bytes] | Failure]:
    """Where each JSON text of a file is, and its bytes."""
    if file.suffix != ".json":
        yield from file.lines()
        return
    data = file.content(MAX_BYTES)
    yield data if isinstance(data, Failure) else (file.origin, data)


def _items(origin: str, text: bytes) -> Sequence[Mapping[str, Any]] | Failure:
    try:
        data: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        return Failure(origin=origin, reason=f"no JSON ({error})")
    while isinstance(data, Mapping) and "message_id" not in data:
        data = data.get("items") or data.get("data") or data.get("messages") or []
    listed = [data] if isinstance(data, Mapping) else data if isinstance(data, list) else []
    return [item for item in listed if isinstance(item, Mapping) and "message_id" in item]


def _threads(file: File, messages: Sequence[Mapping[str, Any]]) -> Iterator[Discussion]:
    threads: dict[str, list[Mapping[str, Any]]] = {}
    for item in sorted(messages, key=_time):
        threads.setdefault(str(item.get("root_id") or item["message_id"]), []).append(item)
    for key, (first, *replies) in threads.items():
        text = text_of(first)
        said = [(item, text_of(item)) for item in replies]
        if not text or first["message_id"] != key or not any(reply for _, reply in said):
            continue
        title = text.splitlines()[0]
        yield Discussion(
            origin=f"{file.origin}#{key}",
            key=key,
            title=shortened(title, LONGEST_TITLE),
            messages=(
                Message(text=text, role="reporter"),
                *(
                    Message(text=reply, role="reporter" if _sender(item) == _sender(first) else "other")
                    for item, reply in said
                    if reply
                ),
            ),
            updated=iso_time(_time(replies[-1]) / 1000),
        )


def _line(elements: object) -> str:
    """One line of a rich text; people are named nowhere."""
    parts = []
    for element in elements if isinstance(elements, list) else ():
        if not isinstance(element, Mapping):
            continue
        text = str(element.get("text") or "")
        if element.get("tag") == "at":
            text = "@someone"
        elif element.get("tag") == "code_block":
            text = f"\n```\n{text.strip()}\n```\n"
        elif element.get("tag") == "a" and element.get("href"):
            text = f"[{text}]({element['href']})"
        parts.append(text)
    return "".join(parts)


def _without_mentions(text: str, item: Mapping[str, Any]) -> str:
    mentions = item.get("mentions")
    for mention in mentions if isinstance(mentions, list) else ():
        if isinstance(mention, Mapping) and mention.get("key"):
            text = text.replace(str(mention["key"]), "@someone")
    return text


def _sender(item: Mapping[str, Any]) -> object:
    sender = item.get("sender")
    return sender.get("id") if isinstance(sender, Mapping) else sender


def _time(item: Mapping[str, Any]) -> float:
    """Milliseconds since the epoch."""
    return number_of(item.get("create_time"))
