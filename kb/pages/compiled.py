"""What the built-in pages of a kind were read into, kept as Python keeps its compiled modules.

It fits the sizes and times of the pages, and of the code and data that they are read with.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from trainmedic.kb.kept import CACHE, Kept, stamp_of


class CompiledPages:
    """What is kept of the pages below ``folder``. They are read with what is in ``code``, but for ``no_readers``
    there."""

    def __init__(self, folder: Path, code: Path, no_readers: Collection[str]) -> None:
        self._kept = Kept(folder, "pages")
        self._folder = folder
        self._code = code
        self._no_readers = no_readers

    @property
    def can_be_kept(self) -> bool:
        return self._kept.can_be_kept

    def load(self) -> Any:
        """What was kept for the pages as they are; None if there is nothing, or if it cannot be read."""
        return self._kept.load(self._stamp)

    def keep(self, value: object) -> None:
        """Keep ``value`` for the pages as they were when `load` was called, if that can be done."""
        self._kept.keep(self._stamp, value)

    @cached_property
    def _stamp(self) -> bytes:
        # All of it and no digest: loading what makes one takes longer.
        files = (*_files(self._code, self._no_readers), *_files(self._folder))
        return ("".join(stamp_of(path, status) for path, status in files) + "\n").encode(errors="surrogateescape")


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
