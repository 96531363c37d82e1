"""Reading the files that a verb was given."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from trainmedic.kb.errors import TrainmedicError
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.intake import decode

MAX_BYTES = 64 * 1024 * 1024
STDIN = "-"
STDIN_NAME = "stdin"


class Unreadable(TrainmedicError):
    """A named file cannot be read."""

    code = "unreadable"
    kind = "unavailable"


def attachments(names: Sequence[str]) -> tuple[Attachment, ...]:
    """The files as they are; ``-`` is standard input. Raises `Unreadable`."""
    return tuple(Attachment(name=STDIN_NAME if name == STDIN else name, content=content(name)) for name in names)


def content(name: str) -> bytes:
    """The bytes of one file. Of one over `MAX_BYTES` the middle is left out: its line breaks stay, and nothing else."""
    try:
        if name == STDIN:
            return bounded(sys.stdin.buffer)
        if Path(name).is_dir():
            raise Unreadable(f"{name} is a folder, not a file")
        with Path(name).open("rb") as stream:
            return bounded(stream)
    except (OSError, ValueError) as error:
        raise Unreadable(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def bounded(stream: BinaryIO) -> bytes:
    """The whole stream, or its head and its tail with the line breaks of what stood between."""
    head = stream.read(MAX_BYTES // 2)
    tail, breaks = b"", 0
    while chunk := stream.read(MAX_BYTES // 4):
        tail += chunk
        if len(tail) > MAX_BYTES:
            breaks += tail.count(b"\n", 0, -MAX_BYTES // 2)
            tail = tail[-MAX_BYTES // 2 :]
    return head + b"\n" * breaks + tail


def question(given: str) -> str:
    """The question as given; ``-`` reads it from standard input, in whatever encoding. Raises `Unreadable`."""
    if given != STDIN:
        return given
    decoded = decode(content(STDIN))
    if decoded is None:
        raise Unreadable("the question on standard input is not text")
    return decoded[0]


def write(name: str, data: bytes) -> None:
    """Write a file. Raises `Unreadable`."""
    try:
        Path(name).write_bytes(data)
    except OSError as error:
        raise Unreadable(f"{name} cannot be written: {error.strerror}") from error


def language_of(wanted: str, environ_language: str) -> str:
    """``en`` or ``zh``: as wanted, else as the terminal is set."""
    if wanted != "auto":
        return wanted
    return "zh" if environ_language.lower().startswith("zh") else "en"
