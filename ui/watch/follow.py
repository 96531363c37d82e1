"""A log read as it grows: a file, through rotation and truncation like ``tail -F``, or a stream such as a pipe."""

from __future__ import annotations

import codecs
import os
import stat
import sys
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import BinaryIO

PIECE = 1 << 20


def is_stream(path: Path) -> bool:
    """Whether the path is a pipe, a terminal or the like, which can be read only once."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


class GrowingFile:
    """One file, which need not exist yet. Bytes that are not UTF-8 become replacement characters.

    ``from_end`` skips the present content, which is from an earlier run.
    """

    ended = False

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


class GrowingStream:
    """Standard input (``-``), or a path that `is_stream`, read in a thread to its end."""

    def __init__(self, path: Path) -> None:
        self._pieces: SimpleQueue[str | None] = SimpleQueue()
        self.ended = False
        Thread(target=self._fill, args=(path,), daemon=True).start()

    def read(self) -> str:
        """The text that has arrived since the last call, possibly empty."""
        texts: list[str] = []
        while not self.ended:
            try:
                piece = self._pieces.get_nowait()
            except Empty:
                break
            if piece is None:
                self.ended = True
            else:
                texts.append(piece)
        return "".join(texts)

    def close(self) -> None:
        """Nothing to close: the thread ends with the stream, or with the process."""

    def _fill(self, path: Path) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        try:
            descriptor = sys.stdin.fileno() if str(path) == "-" else os.open(path, os.O_RDONLY)
            # Not a buffered read, which would wait until its buffer is full.
            while piece := os.read(descriptor, PIECE):
                self._pieces.put(decoder.decode(piece))
        except OSError as error:
            sys.stderr.write(f"trainmedic: {path} cannot be read: {error.strerror}\n")
        finally:
            self._pieces.put(None)
