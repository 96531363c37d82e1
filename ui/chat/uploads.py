"""Uploaded files: where they are, and that they are read once and deleted."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from trainmedic.kb.model.place import Attachment, Source
from trainmedic.kb.parse.text.opening import foreign_kind

VARIABLE = "GRADIO_TEMP_DIR"
"""Gradio reads its upload folder from the environment only."""


_expected: Counter[str] = Counter()
_lock = Lock()


@contextmanager
def upload_folder() -> Iterator[Path]:
    """The folder that Gradio writes uploads to, before any of our code sees them: ours, and gone when we stop."""
    earlier = os.environ.get(VARIABLE)
    with tempfile.TemporaryDirectory(prefix="trainmedic-uploads-") as folder:
        os.environ[VARIABLE] = folder
        try:
            yield Path(folder)
        finally:
            if earlier is None:
                del os.environ[VARIABLE]
            else:
                os.environ[VARIABLE] = earlier


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingFile:
    """A file waiting to be sent, as recognised; ``index`` is its position among the waiting files. The lines of a large
    compressed file are not counted before it is sent."""

    name: str
    kind: str
    lines: int | None
    read: bool
    index: int = 0


def expect(paths: Sequence[str]) -> None:
    """Each of these files will be read once more. Equal uploads under one name share a file."""
    with _lock:
        for path in [path for path in _expected if not os.path.exists(path)]:
            del _expected[path]  # swept away
        _expected.update(map(os.path.realpath, paths))


def read_uploads(paths: Sequence[str]) -> tuple[Attachment, ...]:
    """Read the uploaded files that still exist, and delete those that no other upload shares."""
    attachments = []
    for path in map(Path, paths):
        with suppress(OSError), _lock:
            attachments.append(Attachment(name=path.name, content=path.read_bytes()))
            if _is_last(path):
                path.unlink()
                path.parent.rmdir()
    return tuple(attachments)


def _is_last(path: Path) -> bool:
    """Whether no other upload shares this file, after it was read once more."""
    real = os.path.realpath(path)
    remaining = _expected.pop(real, 1) - 1
    if remaining > 0:
        _expected[real] = remaining
    return remaining <= 0


def lines_of(content: str | bytes) -> int:
    """Number of lines, including a last one without a line break; 0 of what is not text."""
    if isinstance(content, bytes):
        if foreign_kind(content)[0]:
            return 0
        return content.count(b"\n") + (content[-1:] not in (b"", b"\n"))
    return content.count("\n") + (content[-1:] not in ("", "\n"))


def source_of(name: str | None, text: str) -> Source:
    """A text from the history, which was masked when it was stored."""
    return Source(name=name, text=text, byte_count=len(text.encode()))
