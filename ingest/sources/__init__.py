"""Sources of write-ups. Each module here is one: ``read(location)`` yields `Raw` and `Failure`.

A source only fetches; cleaning, deduplication and drafting are the same for all (`ingest.build`).
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from typing import Protocol

from trainmedic.ingest.document import Failure, Raw


class Source(Protocol):
    def read(self, location: str) -> Iterator[Raw | Failure]:
        """Everything at ``location``, in a stable order."""
        ...


def names() -> tuple[str, ...]:
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


def source(name: str) -> Source:
    module: Source = import_module(f"{__name__}.{name}")
    return module
