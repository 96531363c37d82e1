"""What the built-in pages of a kind were read into, kept as Python keeps its compiled modules.

The file is in ``__pycache__`` beside the pages and fits the sizes and times of the pages, and of the code and data that
they are read with. It is as trusted as the modules there, and neither read nor written where Python writes none.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import trainmedic.kb.picklable  # noqa: F401

CACHE = "__pycache__"
NAME = f"pages.{sys.implementation.cache_tag}.pickle"


class CompiledPages:
    """The file for the pages below ``folder``. They are read with what is in ``code``, but for ``no_readers`` there."""

    def __init__(self, folder: Path, code: Path, no_readers: Collection[str]) -> None:
        self._file = folder / CACHE / NAME
        self._folder = folder
        self._code = code
        self._no_readers = no_readers

    @property
    def can_be_kept(self) -> bool:
        return not sys.dont_write_bytecode and os.access(self._folder, os.W_OK)

    def load(self) -> Any:
        """What was kept for the pages as they are; None if there is nothing, or if it cannot be read."""
        with suppress(Exception):  # whatever is wrong with it, the pages are there
            content = self._file.read_bytes()
            stamp = self._stamp()
            if content.startswith(stamp):
                return pickle.loads(memoryview(content)[len(stamp) :])
        return None

    def keep(self, value: object) -> None:
        """Keep ``value`` for the pages as they are, if that can be done."""
        if not self.can_be_kept:
            return
        with suppress(OSError):
            self._file.parent.mkdir(exist_ok=True)
            with NamedTemporaryFile(dir=self._file.parent, prefix=NAME, delete=False) as file:
                file.write(self._stamp() + pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
            os.chmod(file.name, 0o644)  # for all users of the package, like its modules
            os.replace(file.name, self._file)

    def _stamp(self) -> bytes:
        digest = hashlib.sha256()
        for path, status in (*_files(self._code, self._no_readers), *_files(self._folder)):
            # Whole seconds, as for modules: archives and layers of images keep no more.
            digest.update(f"\0{path}\0{status.st_size}\0{int(status.st_mtime)}".encode(errors="surrogateescape"))
        return digest.digest()


def _files(folder: Path | str, leave_out: Collection[str] = ()) -> Iterator[tuple[str, os.stat_result]]:
    """The files below a folder, in order."""
    with os.scandir(folder) as entries:
        ordered = sorted(entries, key=lambda entry: entry.name)
    for entry in ordered:
        if entry.name == CACHE or entry.name in leave_out:
            continue
        if entry.is_dir():
            yield from _files(entry.path)
        else:
            yield entry.path, entry.stat()
