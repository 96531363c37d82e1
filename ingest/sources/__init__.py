"""Where write-ups come from. Each module here is one source: ``read(location)`` yields `Raw` and `Failure`.

A source only fetches; cleaning, deduplication and drafting are the same for all (`ingest.build`).
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from typing import Protocol

from trainmedic.ingest.document import Failure, Raw


class Source(Protocol):
    """What a source module offers."""

    def read(self, location: str) -> Iterator[Raw | Failure]:
        """Everything at ``location``, in a stable order."""
        ...


def names() -> tuple[str, ...]:
    """The sources there are."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


def source(name: str) -> Source:
    """One source by name."""
    module: Source = import_module(f"{__name__}.{name}")
    return module
