"""A file that grows, read as it grows; through rotation and truncation, like ``tail -F``."""

from __future__ import annotations

import codecs
import os
from pathlib import Path
from typing import BinaryIO

PIECE = 1 << 20


class GrowingFile:
    """One file, which need not exist yet. Bytes that are not UTF-8 become replacement characters.

    ``from_end`` skips the present content, which is from an earlier run.
    """

    def __init__(self, path: Path, *, from_end: bool = False) -> None:
        self._path = path
        self._stream = self._opened() if from_end else None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        if self._stream is not None:
            self._stream.seek(0, os.SEEK_END)

    def read(self) -> str:
        """The text written since the last call, possibly empty."""
        stream = self._stream = self._stream or self._opened()
        if stream is None:
            return ""
        if os.fstat(stream.fileno()).st_size < stream.tell():  # truncated
            stream.seek(0)
        # Incremental: a character may be cut in two between reads.
        text = self._decoder.decode(stream.read(PIECE))
        # Only at its end, so that the last lines of the rotated file are not lost.
        if not text and self._replaced(stream):
            self.close()
        return text

    def close(self) -> None:
        """Close the file; the next `read` opens it again from its beginning."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _opened(self) -> BinaryIO | None:
        try:
            return self._path.open("rb")
        except OSError:
            return None

    def _replaced(self, stream: BinaryIO) -> bool:
        """Whether the path now names another file, as after a rotation."""
        try:
            current, opened = self._path.stat(), os.fstat(stream.fileno())
        except OSError:
            return False
        return (current.st_dev, current.st_ino) != (opened.st_dev, opened.st_ino)
