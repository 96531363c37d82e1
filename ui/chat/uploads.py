"""Uploaded files: what one looks like before it is sent, and its content when it is, with nothing left on the disk."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from trainmedic.kb.model.place import Attachment, Source
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.question.request import safely_named

PEEK = 200_000
"""Bytes of a file that are looked at for its kind before it is sent."""


_expected: Counter[str] = Counter()
_lock = Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingFile:
    """A file that waits to be sent, as it is recognised; ``index`` is its place among the waiting files."""

    name: str
    kind: str
    lines: int
    read: bool
    index: int


def expect(paths: Sequence[str]) -> None:
    """Each of these files will be taken once more. Two uploads of the same text under one name are one file."""
    with _lock:
        for path in [each for each in _expected if not os.path.exists(each)]:
            del _expected[path]  # swept away
        _expected.update(map(os.path.realpath, paths))


def taken(paths: Sequence[str]) -> tuple[Attachment, ...]:
    """The uploaded files as far as they are there; nothing is left on the disk but what somebody else will take."""
    found = []
    for path in map(Path, paths):
        with suppress(OSError), _lock:
            found.append(Attachment(name=path.name, content=path.read_bytes()))
            if _is_last(path):
                path.unlink()
                path.parent.rmdir()
    return tuple(found)


def _is_last(path: Path) -> bool:
    """Whether nobody else waits for this file, now that it was taken once more."""
    real = os.path.realpath(path)
    left = _expected.pop(real, 1) - 1
    if left > 0:
        _expected[real] = left
    return left <= 0


def peeked(path: str, number: int) -> WaitingFile | None:
    """How one waiting file is recognised; None if it is gone."""
    try:
        content = Path(path).read_bytes()
    except OSError:
        return None
    (shown,) = safely_named((Attachment(name=Path(path).name, content=b""),))
    name = shown.name
    start = content[:PEEK]
    kept = start[: start.rfind(b"\n") + 1] if len(content) > PEEK and b"\n" in start else start
    (receipt,) = (
        each for each in parse("", (Attachment(name=name, content=kept),)).receipt.inputs if each.name == name
    )
    return WaitingFile(name=name, kind=receipt.kind, lines=lines_of(content), read=receipt.read, index=number)


def lines_of(content: str | bytes) -> int:
    """Lines of a text; a last line without its end counts."""
    if isinstance(content, bytes):
        return content.count(b"\n") + (content[-1:] not in (b"", b"\n"))
    return content.count("\n") + (content[-1:] not in ("", "\n"))


def source_of(name: str | None, text: str) -> Source:
    """A text of the history as it was read: masked when it was stored."""
    return Source(name=name, text=text, byte_count=len(text.encode()))
