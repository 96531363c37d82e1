"""Sources of write-ups and discussions. Each module here is one, named as on the command line.

``read(location, since)`` lists and fetches; masking, cleaning, summaries and storing are the same for all
(`ingest.threads`). Something that cannot be read is a `Failure` among the items, never an exception.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from typing import Protocol

from trainmedic.ingest.document import Item, printable


class Source(Protocol):
    def read(self, location: str, since: str = "") -> Iterator[Item]:
        """Everything at ``location``, in a stable order.

        A source that can tell what changed yields `Checkpoint`s; ``since`` is the value of the last one. It then reads
        only what changed, and a `Gone` for each item that it knows to be deleted.
        """
        ...


def names() -> tuple[str, ...]:
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


def source(name: str) -> Source:
    module: Source = import_module(f"{__name__}.{name}")
    return module


def read(name: str, location: str, since: str = "") -> Iterator[Item]:
    """What a source reads, with names that can be stored."""
    return map(printable, source(name).read(location, since))


def recognised(location: str) -> str:
    """The source that knows the layout of an export at ``location``; "folder" if none does."""
    for name in names():
        recognises = getattr(import_module(f"{__name__}.{name}"), "recognises", None)
        if recognises is not None and recognises(location):
            return name
    return "folder"
