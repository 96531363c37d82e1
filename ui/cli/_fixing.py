"""Applying safe fixes to files in place. Only what was meant changes: encoding, line ends and odd bytes stay."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from trainmedic.kb.mask import mask
from trainmedic.kb.model.report import Edit
from trainmedic.kb.parse.intake import decode

_BREAK = re.compile(r"\r\n|\r|\n")
_BEYOND = "\U0010ffff"
"""Stands for one stretch of bytes that are no UTF-8; a noncharacter, so no text has it."""


@dataclass(slots=True)
class File:
    """A file's text as the parser counts its lines and columns, and the way back to its bytes."""

    text: str
    encoding: str
    mark: bytes = b""
    odd: list[bytes] = field(default_factory=list)

    def to_bytes(self) -> bytes:
        """The file's bytes."""
        parts = self.text.split(_BEYOND) if self.odd else [self.text]
        whole = [parts[0].encode(self.encoding)]
        for kept, part in zip(self.odd, parts[1:], strict=True):
            whole += [kept, part.encode(self.encoding)]
        return self.mark + b"".join(whole)


def opened(raw: bytes) -> File | None:
    """The file behind ``raw``, or None where its bytes could not be written back unchanged."""
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
            file = _with_odd_bytes(raw[len(mark) :], mark)
        else:
            file = File(text=raw.decode(encoding), encoding=encoding)
        return file if file.to_bytes() == raw else None
    except (UnicodeError, ValueError):
        return None


def _with_odd_bytes(raw: bytes, mark: bytes) -> File:
    """UTF-8 with one character for every stretch of bad bytes, as the decoder's replacement has it."""
    file = File(text="", encoding="utf-8", mark=mark)
    parts, rest = [], memoryview(raw)
    while rest:
        try:
            parts.append(codecs.utf_8_decode(rest, "strict", True)[0])
            break
        except UnicodeDecodeError as error:
            parts += [codecs.utf_8_decode(rest[: error.start], "strict", True)[0], _BEYOND]
            file.odd.append(bytes(rest[error.start : error.end]))
            rest = rest[error.end :]
    file.text = "".join(parts)
    return file


def changed(file: File, edits: Iterable[Edit]) -> bool:
    """Make ``edits`` in ``file``. False, and nothing is changed, where one does not fit the text that stands there."""
    starts = [0, *(found.end() for found in _BREAK.finditer(file.text))]
    breaks = Counter(_BREAK.findall(file.text))
    newline = breaks.most_common(1)[0][0] if breaks else "\n"
    shown = mask(file.text).text  # spans hold masked text
    places: list[tuple[int, int, str]] = []
    for edit in edits:
        span = edit.span
        if span.end_line > len(starts):
            return False
        start, end = starts[span.line - 1] + span.column - 1, starts[span.end_line - 1] + span.end_column - 1
        if _BREAK.sub("\n", shown[start:end]).replace(_BEYOND, "\ufffd") != span.text:
            return False
        places.append((start, end, edit.replacement.replace("\n", newline)))
    for start, end, replacement in sorted(places, reverse=True):
        file.text = file.text[:start] + replacement + file.text[end:]
    return bool(places)
