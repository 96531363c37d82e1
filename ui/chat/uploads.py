"""Uploaded files: what one looks like before it is sent, and its content when it is, with nothing left on the disk."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from kb.model.place import Attachment, Source
from kb.parse import parse

PEEK = 200_000
"""Bytes of a file that are looked at for its kind before it is sent."""


def taken(paths: Sequence[str]) -> tuple[Attachment, ...]:
    """The uploaded files; nothing of them is left on the disk."""
    found = []
    for path in map(Path, paths):
        with suppress(OSError):
            found.append(Attachment(name=path.name, content=path.read_bytes()))
            path.unlink()
            path.parent.rmdir()
    return tuple(found)


def peeked(path: str, number: int) -> dict[str, Any] | None:
    """What one waiting file looks like: name, kind, lines. None where it is gone."""
    try:
        content = Path(path).read_bytes()
    except OSError:
        return None
    name = Path(path).name
    start = content[:PEEK]
    kept = start[: start.rfind(b"\n") + 1] if len(content) > PEEK and b"\n" in start else start
    (receipt,) = (
        each for each in parse("", (Attachment(name=name, content=kept),)).receipt.inputs if each.name == name
    )
    return {
        "name": name,
        "kind": receipt.kind,
        "lines": lines_of(content),
        "read": receipt.read,
        "index": number,
    }


def lines_of(content: str | bytes) -> int:
    """Lines of a text; a last line without its end counts."""
    if isinstance(content, bytes):
        return content.count(b"\n") + (content[-1:] not in (b"", b"\n"))
    return content.count("\n") + (content[-1:] not in ("", "\n"))


def source_of(name: str | None, text: str) -> Source:
    """A text of the history as it was read: masked when it was stored."""
    return Source(name=name, text=text, byte_count=len(text.encode()))
