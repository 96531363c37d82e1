"""A file that grows, read as it grows; through rotation and truncation, like ``tail -F``."""

from __future__ import annotations

import codecs
import os
from pathlib import Path
from typing import BinaryIO

PIECE = 1 << 20


class Followed:
    """One file. It need not be there yet. Text that is no UTF-8 is shown with replacement characters.

    ``from_end``: what the file holds already is of an earlier run.
    """

    def __init__(self, path: Path, *, from_end: bool = False) -> None:
        self._path = path
        self._stream = self._opened() if from_end else None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        if self._stream is not None:
            self._stream.seek(0, os.SEEK_END)

    def read(self) -> str:
        """What has been written since the last time; empty where there is nothing new."""
        stream = self._stream = self._stream or self._opened()
        if stream is None:
            return ""
        if os.fstat(stream.fileno()).st_size < stream.tell():  # emptied and begun anew
            stream.seek(0)
        found = self._decoder.decode(stream.read(PIECE))
        if not found and self._replaced(stream):
            self.close()
        return found

    def close(self) -> None:
        """Give the file back; the next `read` opens it again from its beginning."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _opened(self) -> BinaryIO | None:
        try:
            return self._path.open("rb")
        except OSError:
            return None

    def _replaced(self, stream: BinaryIO) -> bool:
        """Whether another file has the name now."""
        try:
            now, own = self._path.stat(), os.fstat(stream.fileno())
        except OSError:
            return False
        return (now.st_dev, now.st_ino) != (own.st_dev, own.st_ino)
