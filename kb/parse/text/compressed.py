"""Compressed texts (gzip, bzip2, zstd) → their bounded content, as rotated logs come. Never raises."""

from __future__ import annotations

import bz2
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trainmedic.kb.parse.text.condense import ROOM, bounded

MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd"}
ENDINGS = (".gz", ".bz2", ".zst")
MOST_KEPT = 64 * 1024 * 1024
MOST_EXPANDED = 512 * 1024 * 1024
"""Bytes that are decompressed of one input: a few kilobytes may expand to many gigabytes."""
MOST_MEMBERS = 10_000
"""Files in one: compressors that work in parallel write one for each block."""
MOST_WINDOW = 128 * 1024 * 1024
"""Memory that the writer of a zstd file may ask for."""
_STEP = 2048
"""Bytes fed at once: even these may expand to 64 MiB."""
_SMALL_STEP = 64
_LARGEST_PIECE = 1024 * 1024
"""Bytes that one step of bzip2 expands to at most, for which 45 bytes may be 45 MiB."""
_FIRST = 1024 * 1024
"""Bytes that hold the first block of any format: that of bzip2 is of 900 kB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expanded:
    """The unpacked text, and how many lines of it were left out. ``complete``: its end was reached and nothing was
    damaged."""

    kind: str
    content: bytes
    left_out: int
    complete: bool


def kind_of(content: bytes) -> str:
    """The format of compressed content; empty for other content."""
    return next((kind for magic, kind in MAGIC.items() if content.startswith(magic)), "")


def plain_name(name: str) -> str:
    """A file's name without the ending of its compression: ``train.log.gz`` is a ``train.log``."""
    stem, dot, ending = name.rpartition(".")
    return stem if dot + ending.lower() in ENDINGS and stem.rpartition("/")[2] else name


def expand(content: bytes) -> Expanded | None:
    """The content, of which many lines may be left blank; None if it is not compressed."""
    kind = kind_of(content)
    pieces = _Pieces(kind, content)
    try:
        kept, left_out = bounded(pieces, MOST_KEPT, ROOM) if kind else (b"", 0)
    except ImportError:  # zstandard, where only the packages of a check are installed
        return None
    return Expanded(kind=kind, content=kept, left_out=left_out, complete=pieces.complete) if kind else None


def unpacked(content: bytes) -> Iterator[bytes]:
    """The pieces that compressed content expands to, within the bounds. Raises `ImportError` as its reader does."""
    return iter(_Pieces(kind_of(content), content))


def start_of(content: bytes, most: int) -> bytes | None:
    """The first ``most`` bytes that it expands to, or fewer; None if it is not compressed. The price is bounded too."""
    kind, start = kind_of(content), b""
    try:
        for piece in _Pieces(kind, content[:_FIRST], _SMALL_STEP) if kind else ():
            start += piece[: most - len(start)]
            if len(start) == most:
                break
    except ImportError:
        return None
    return start if kind else None


class _Pieces:
    """The decompressed pieces, up to `MOST_EXPANDED` bytes or to the first damaged one."""

    def __init__(self, kind: str, content: bytes, step: int = _STEP) -> None:
        self.complete = False
        self._kind = kind
        self._content = content
        self._step = step

    def __iter__(self) -> Iterator[bytes]:
        expanded = 0
        try:
            for piece in self._members():
                expanded += len(piece)
                yield piece
                if expanded > MOST_EXPANDED:
                    return
        except ImportError:
            raise
        except Exception:  # each library has exceptions of its own for damage
            return

    def _members(self) -> Iterator[bytes]:
        start = 0
        for _ in range(MOST_MEMBERS):
            member = _decompressor(self._kind)
            while not member.eof:
                chunk = self._content[start : start + self._step]
                if not chunk:
                    return
                start += len(chunk)
                if self._kind != "bzip2":
                    yield member.decompress(chunk)
                    continue
                yield member.decompress(chunk, _LARGEST_PIECE)
                while not (member.needs_input or member.eof):
                    yield member.decompress(b"", _LARGEST_PIECE)
            start -= len(member.unused_data)
            if kind_of(self._content[start : start + 4]) != self._kind:  # the end, or what tar fills its blocks with
                self.complete = True
                return


def _decompressor(kind: str) -> Any:
    """Raises `ImportError` without the library."""
    if kind == "gzip":
        return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    if kind == "bzip2":
        return bz2.BZ2Decompressor()
    import zstandard

    return zstandard.ZstdDecompressor(max_window_size=MOST_WINDOW).decompressobj()
