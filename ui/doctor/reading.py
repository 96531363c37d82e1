"""Reading of folders that anyone may have filled: regular files only, no links, within a budget of files, bytes, depth
and time."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from trainmedic.kb.parse import run_folder
from trainmedic.kb.parse.text.condense import ROOM, bounded

MOST_FILES, MOST_BYTES = 40, 8 * 1024 * 1024
MOST_ENTRIES, MOST_DEPTH = 20_000, 6
MOST_OF_ONE = 1024 * 1024
WHOLE = 64 * 1024 * 1024
"""Of a larger file only the end is read, whose lines count from there: its lines alone would take seconds to count."""
_PIECE = 1024 * 1024


@dataclass(slots=True, kw_only=True)
class Reading:
    """The rest of the budget, and what was not read: ``links``, files that were refused, whatever came too late."""

    until: float
    files: int = MOST_FILES
    size: int = MOST_BYTES
    links: int = 0
    seen: set[tuple[int, int]] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)
    cut_short: bool = False

    @classmethod
    def within(cls, seconds: float) -> Reading:
        return cls(until=time.monotonic() + seconds)

    @property
    def is_over(self) -> bool:
        over = time.monotonic() > self.until or self.files <= 0 or self.size <= 0
        self.cut_short |= over
        return over

    def entries(self, folder: Path) -> Iterator[run_folder.Entry]:
        """The files below a folder, those near it first."""
        waiting, seen, left_out = [(folder, "")], 0, run_folder.left_out()
        while waiting:
            here, prefix = waiting.pop(0)
            for entry in self._listed(here):
                seen += 1
                if seen > MOST_ENTRIES or self.is_over:
                    self.cut_short = True
                    return
                if entry.is_symlink():
                    self.links += 1
                elif entry.is_dir(follow_symlinks=False):
                    hidden = entry.name.startswith(".") and entry.name != ".hydra"
                    if not hidden and entry.name not in left_out and prefix.count("/") < MOST_DEPTH:
                        waiting.append((here / entry.name, f"{prefix}{entry.name}/"))
                elif entry.is_file(follow_symlinks=False):
                    with suppress(OSError):
                        state = entry.stat(follow_symlinks=False)
                        yield run_folder.Entry(path=prefix + entry.name, size=state.st_size, modified=state.st_mtime)

    def _listed(self, folder: Path) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as found:
                return sorted(found, key=lambda entry: entry.name)
        except OSError:
            self.refused.append(str(folder))
            return []

    def file(self, path: Path, most: int = MOST_OF_ONE) -> tuple[bytes, int, int] | None:
        """The content, or what matters in a longer one, how many lines of it were left out, and how many bytes at its
        beginning were passed over. None if it is not a regular file, cannot be read, was read before, or the budget is
        spent."""
        if self.is_over:
            return None
        most = min(most, self.size)
        try:
            # Neither follows a link nor waits for the writer of a pipe.
            number = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
            with open(number, "rb") as stream:
                state = os.fstat(number)
                if not stat.S_ISREG(state.st_mode):
                    raise OSError("no regular file")
                if (state.st_dev, state.st_ino) in self.seen:
                    return None
                passed = state.st_size - most if state.st_size > WHOLE else 0
                stream.seek(passed)
                content, left_out = bounded(iter(lambda: stream.read(_PIECE), b""), most, ROOM)
        except (OSError, ValueError):
            self.refused.append(str(path))
            return None
        self.seen.add((state.st_dev, state.st_ino))
        self.files -= 1
        self.size -= min(len(content), most)
        return content, left_out, passed

    def end(self, path: Path, most: int) -> bytes:
        """The last bytes of a file, to choose it by; nothing of the budget but time is spent."""
        with suppress(OSError, ValueError):
            if not self.is_over and path.is_file() and not path.is_symlink():
                with path.open("rb") as stream:
                    stream.seek(max(0, os.fstat(stream.fileno()).st_size - most))
                    return stream.read(most)
        return b""
