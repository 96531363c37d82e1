"""What files were read into, kept beside them as Python keeps its compiled modules.

A kept file is in ``__pycache__``, as trusted as the modules there, and is not written where Python writes none.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

import trainmedic.kb.picklable  # noqa: F401

CACHE = "__pycache__"
T = TypeVar("T")


class Kept:
    """A value made from ``name`` in a folder. Its stamp says of which state of its sources."""

    def __init__(self, folder: Path | str, name: str) -> None:
        self._folder = folder
        self._name = f"{name}.{sys.implementation.cache_tag}.pickle"
        self._path = f"{folder}/{CACHE}/{self._name}"

    @property
    def can_be_kept(self) -> bool:
        return not sys.dont_write_bytecode and os.access(self._folder, os.W_OK)

    def load(self, stamp: bytes) -> Any:
        """The value, if it was kept with this stamp; None if not, or if it cannot be read."""
        with suppress(Exception):  # whatever is wrong with it, its sources are there
            with open(self._path, "rb") as file:
                content = file.read()
            if content.startswith(stamp):
                return pickle.loads(memoryview(content)[len(stamp) :])
        return None

    def keep(self, stamp: bytes, value: object) -> None:
        """Keep ``value`` with ``stamp``, if that can be done."""
        if not self.can_be_kept:
            return
        from tempfile import NamedTemporaryFile  # 5 ms, for the first start alone

        with suppress(OSError):
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            with NamedTemporaryFile(dir=os.path.dirname(self._path), prefix=self._name, delete=False) as file:
                file.write(stamp + pickled(value))
            os.chmod(file.name, 0o644)  # for all users of the package, like its modules
            os.replace(file.name, self._path)


def pickled(value: object) -> bytes:
    """As `pickle.dumps`, but quicker to load."""
    file = BytesIO()
    _Pickler(file, pickle.HIGHEST_PROTOCOL).dump(value)
    return file.getvalue()


def unpickled(content: bytes) -> Any:
    """The value of bytes that this program made: of a file as trusted as its modules, or in a process of its own."""
    return pickle.loads(content)


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: object) -> Any:
        """Dataclasses with slots by their values; Python's way asks for their fields again for each of them."""
        kind = type(value)
        if not is_dataclass(kind) or hasattr(value, "__dict__"):
            return NotImplemented
        return _made, (kind, *(getattr(value, field.name) for field in fields(kind)))


def _made(kind: type, *values: object) -> object:
    made: object = object.__new__(kind)
    for assign, value in zip(_assigning(kind), values, strict=True):
        assign(made, value)
    return made


@cache
def _assigning(kind: Any) -> tuple[Callable[[object, object], None], ...]:
    """What sets each field, of a frozen class too."""
    return tuple(getattr(kind, field.name).__set__ for field in fields(kind))


def kept_of(paths: Sequence[Path | str], make: Callable[[], T]) -> T:
    """What ``make`` makes of the first of these files with the code of the others, kept beside the first."""
    first = Path(paths[0])
    kept = Kept(first.parent, first.name)
    try:
        stamp = ("".join(stamp_of(os.path.basename(path), os.stat(path)) for path in paths) + "\n").encode()
    except OSError:
        return make()
    made: T | None = kept.load(stamp)
    if made is None:
        made = make()
        kept.keep(stamp, made)
    return made


def stamp_of(path: Path | str, status: os.stat_result) -> str:
    """The state of a file: its size and time, in whole seconds, as for modules: archives and layers of images keep no
    more."""
    return f"{path}\0{status.st_size}\0{int(status.st_mtime)}\0"
