"""Apply safe fixes to files in place. Encoding, line ends and undecodable bytes stay as they are."""

from __future__ import annotations

import codecs
import io
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from trainmedic.kb.mask import mask
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report import Edit
from trainmedic.kb.parse.text.intake import decode
from trainmedic.ui.cli._input import STDIN_NAME, write

_PLACEHOLDER = "\U0010ffff"
"""Replaces a stretch of bytes that are not UTF-8; a noncharacter, so it occurs in no text."""


def in_place(files: Iterable[Attachment], edits_of: Callable[[str], Sequence[Edit]]) -> tuple[Attachment, ...]:
    """Make each file's edits on disk, except in standard input, and return the files after them."""
    return tuple(_changed(attachment, edits_of(attachment.name)) for attachment in files)


def _changed(attachment: Attachment, edits: Sequence[Edit]) -> Attachment:
    raw = attachment.content
    if not edits or not isinstance(raw, bytes) or attachment.name == STDIN_NAME:
        return attachment
    file = read(raw)
    if file is None or not apply(file, edits):
        print(f"{attachment.name} was not changed: its encoding or size does not allow it", file=sys.stderr)
        return attachment
    write(attachment.name, file.to_bytes())
    print(f"fixed {attachment.name}: {len(edits)} edit{'s' if len(edits) > 1 else ''}", file=sys.stderr)
    return Attachment(name=attachment.name, content=file.to_bytes())


@dataclass(slots=True)
class File:
    """A file's text with the parser's lines and columns, and what is needed to turn it back into bytes."""

    text: str
    encoding: str
    mark: bytes = b""
    undecodable: list[bytes] = field(default_factory=list)

    def to_bytes(self) -> bytes:
        parts = self.text.split(_PLACEHOLDER) if self.undecodable else [self.text]
        encoded = [parts[0].encode(self.encoding)]
        for stretch, part in zip(self.undecodable, parts[1:], strict=True):
            encoded += [stretch, part.encode(self.encoding)]
        return self.mark + b"".join(encoded)


def read(raw: bytes) -> File | None:
    """The file behind ``raw``, or None if it could not be written back unchanged."""
    decoded = decode(raw)
    if decoded is None:
        return None
    encoding = decoded[1]
    try:
        if encoding == "utf-16":
            little = raw.startswith(codecs.BOM_UTF16_LE)
            encoding = "utf-16-le" if little else "utf-16-be"
            file = File(text=raw[2:].decode(encoding), encoding=encoding, mark=raw[:2])
        elif encoding.startswith("utf-8"):
            mark = codecs.BOM_UTF8 if raw.startswith(codecs.BOM_UTF8) else b""
            file = _read_utf8(raw[len(mark) :], mark)
        else:
            file = File(text=raw.decode(encoding), encoding=encoding)
        # The proof: a file that does not survive the round trip is never written.
        return file if file.to_bytes() == raw else None
    except (UnicodeError, ValueError):
        return None


def _read_utf8(raw: bytes, mark: bytes) -> File:
    """One placeholder for each stretch of bad bytes, as many characters as the parser's decoder makes of them."""
    file = File(text="", encoding="utf-8", mark=mark)
    parts, rest = [], memoryview(raw)
    while rest:
        try:
            parts.append(codecs.utf_8_decode(rest, "strict", True)[0])
            break
        except UnicodeDecodeError as error:
            parts += [codecs.utf_8_decode(rest[: error.start], "strict", True)[0], _PLACEHOLDER]
            file.undecodable.append(bytes(rest[error.start : error.end]))
            rest = rest[error.end :]
    file.text = "".join(parts)
    return file


def apply(file: File, edits: Iterable[Edit]) -> bool:
    """Make all ``edits`` in ``file``, or none and return False if one does not fit the text."""
    lines = list(io.StringIO(file.text, newline=""))
    starts = [0, *accumulate(map(len, lines))]
    breaks = Counter(line[len(line.rstrip("\r\n")) :] for line in lines)
    newline = max(("\n", "\r\n", "\r"), key=lambda ending: breaks[ending])
    masked = mask(file.text).text  # spans hold masked text
    places: list[tuple[int, int, str]] = []
    for edit in edits:
        span = edit.span
        if span.end_line > len(starts):
            return False
        start, end = starts[span.line - 1] + span.column - 1, starts[span.end_line - 1] + span.end_column - 1
        current = masked[start:end].replace("\r\n", "\n").replace("\r", "\n")
        if current.replace(_PLACEHOLDER, "\ufffd") != span.text:
            return False
        places.append((start, end, edit.replacement.replace("\n", newline)))
    # From the end, so that earlier positions stay valid.
    for start, end, replacement in sorted(places, reverse=True):
        file.text = file.text[:start] + replacement + file.text[end:]
    return bool(places)
