"""On-disk cache of the built-in pages of a kind, stored in ``__pycache__`` like bytecode.

It is as trusted as the modules there, is not written where Python writes none, and fits the sizes and times of the
pages and of the code and data that they are read with. Without it a check takes three times as long.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import trainmedic.kb.picklable  # noqa: F401

CACHE = "__pycache__"


class CompiledPages:
    """The cache of what is read of the pages below ``folder`` under a name. They are read with what is in ``code``, but
    for ``no_readers`` there."""

    def __init__(self, folder: Path, name: str, code: Path, no_readers: Collection[str]) -> None:
        self._folder = folder
        self._code = code
        self._no_readers = no_readers
        self._path = folder / CACHE / f"{name}.{sys.implementation.cache_tag}.pickle"

    @property
    def can_be_kept(self) -> bool:
        return not sys.dont_write_bytecode and os.access(self._folder, os.W_OK)

    def load(self) -> Any:
        """The stored form of the pages as they are; None if there is none, or if it cannot be read."""
        stamp = self._stamp
        with suppress(Exception):  # whatever is wrong with it, its sources are there
            content = self._path.read_bytes()
            if content.startswith(stamp):
                return pickle.loads(memoryview(content)[len(stamp) :])
        return None

    def keep(self, value: object) -> None:
        """Keep ``value`` for the pages as they were when `load` was called, if that can be done."""
        if not self.can_be_kept:
            return
        from tempfile import NamedTemporaryFile  # 5 ms, for the first start alone

        with suppress(OSError):
            self._path.parent.mkdir(exist_ok=True)
            with NamedTemporaryFile(dir=self._path.parent, prefix=self._path.name, delete=False) as file:
                file.write(self._stamp + pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
            os.chmod(file.name, 0o644)  # for all users of the package, like its modules
            os.replace(file.name, self._path)

    @cached_property
    def _stamp(self) -> bytes:
        # All of it and no digest: loading what makes one takes longer. Times in whole seconds, as for modules: archives
        # and layers of images keep no more.
        files = (*_files(self._code, self._no_readers), *_files(self._folder))
        start = len(str(self._code))  # a folder that was moved as a whole keeps its cache
        states = (f"{path[start:]}\0{status.st_size}\0{int(status.st_mtime)}\0" for path, status in files)
        return ("".join(states) + "\n").encode(errors="surrogateescape")


def _files(folder: Path | str, leave_out: Collection[str] = ()) -> Iterator[tuple[str, os.stat_result]]:
    """The files below a folder, in order; none if it does not exist."""
    try:
        with os.scandir(folder) as entries:
            ordered = sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    for entry in ordered:
        if entry.name == CACHE or entry.name in leave_out:
            continue
        if entry.is_dir():
            yield from _files(entry.path)
        else:
            yield entry.path, entry.stat()
