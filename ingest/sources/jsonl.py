"""Write-ups and discussions as JSON lines: the way in for everything that has no source of its own.

    {"id": "inc-12", "title": "…", "text": "…", "url": "https://…", "resolution": "…", "resolved": true}
    {"id": "t-7", "title": "…", "messages": [{"role": "reporter", "text": "…"}, {"role": "maintainer", "text": "…"}]}

``text`` (Markdown) alone makes a write-up; with ``messages`` or ``resolution`` it is a discussion. Roles are reporter,
maintainer and other; ``accepted: true`` marks the answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trainmedic.ingest.items import Discussion, Failure, Item, Message, Options, Raw
from trainmedic.ingest.read.files import files, json_of
from trainmedic.kb.threads.thread import Role

SUFFIXES = (".jsonl", ".ndjson")
_ROLES: Mapping[str, Role] = {"reporter": "reporter", "maintainer": "maintainer"}


def read(options: Options) -> Iterator[Item]:
    """Every line, in order; a broken one is a `Failure` of its own."""
    for file in files(options.location):
        if isinstance(file, Failure):
            yield file
            continue
        if file.suffix not in SUFFIXES:
            continue
        for line in file.lines():
            yield line if isinstance(line, Failure) else _item(*line)


def _item(origin: str, line: bytes) -> Raw | Discussion | Failure:
    data = json_of(origin, line)
    if isinstance(data, Failure):
        return data
    if not isinstance(data, Mapping):
        return Failure(origin=origin, reason="no object")
    title, text, key = _text(data, "title"), _text(data, "text", "body", "content"), _text(data, "id", "key")
    url, updated = _text(data, "url"), _text(data, "updated")
    messages = [_message(item) for item in _list(data.get("messages")) if isinstance(item, Mapping)]
    if resolution := _text(data, "resolution"):
        messages.append(Message(text=resolution, role="maintainer", accepted=True))
    if not (title and (text or messages)):
        return Failure(origin=origin, reason='a "title", and a "text" or "messages" are needed')
    if not messages:
        return Raw(origin=origin, content=f"# {title}\n\n{text}", format="markdown", url=url, key=key, updated=updated)
    if text:
        messages.insert(0, Message(text=text, role="reporter"))
    resolved = bool(data.get("resolved")) or any(message.accepted for message in messages)
    return Discussion(
        origin=origin,
        key=key or url or origin,
        title=title,
        messages=tuple(messages),
        url=url,
        resolved=resolved,
        updated=updated,
    )


def _message(item: Mapping[str, Any]) -> Message:
    role: Role = _ROLES.get(_text(item, "role"), "other")
    return Message(text=_text(item, "text", "body", "content"), role=role, accepted=item.get("accepted") is True)


def _text(item: Mapping[str, Any], *names: str) -> str:
    return next((str(item[name]).strip() for name in names if isinstance(item.get(name), str | int)), "")


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
