"""Reading the files that a verb was given."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from kb.errors import TrainmedicError
from kb.model.place import Attachment

MAX_BYTES = 64 * 1024 * 1024
STDIN = "-"


class Unreadable(TrainmedicError):
    """A named file cannot be read."""

    code = "unreadable"
    kind = "unavailable"


def attachments(names: Sequence[str]) -> tuple[Attachment, ...]:
    """The files as they are; ``-`` is standard input. Raises `Unreadable`."""
    return tuple(Attachment(name="stdin" if name == STDIN else name, content=content(name)) for name in names)


def content(name: str) -> bytes:
    """The bytes of one file, the middle left out where it is over `MAX_BYTES`."""
    if name == STDIN:
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    path = Path(name)
    try:
        if path.is_dir():
            raise Unreadable(f"{name} is a folder, not a file")
        return path.read_bytes()
    except OSError as error:
        raise Unreadable(f"{name} cannot be read: {error.strerror}") from error


def language_of(wanted: str, environ_language: str) -> str:
    """``en`` or ``zh``: as wanted, else as the terminal is set."""
    if wanted != "auto":
        return wanted
    return "zh" if environ_language.lower().startswith("zh") else "en"
