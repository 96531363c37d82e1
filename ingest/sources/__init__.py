"""Sources of write-ups and discussions: one function each, named as on the command line.

``read(options)`` lists and fetches; masking, cleaning, summaries and storing are the same for all (`ingest.pipeline`).
Something that cannot be read is a `Failure` among the items, never an exception. A source that can tell what changed
yields `Checkpoint`s, and is given the value of the last one; it then reads only what changed, and yields a `Gone` for
each item that it knows to be deleted.

A package of yours adds a source by an entry point of the group ``trainmedic.sources``. Beside the function its module
may have ``recognises(location)``, and ``folder`` reads what none recognises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TypeAlias

from trainmedic.ingest.items import Item, Options, printable
from trainmedic.kb import plugins

Source: TypeAlias = Callable[[Options], Iterator[Item]]


def names() -> tuple[str, ...]:
    return tuple(plugins.registered(plugins.SOURCES))


def source(name: str) -> Source:
    read: Source = plugins.load(plugins.SOURCES, name)
    return read


def read(name: str, options: Options) -> Iterator[Item]:
    """The items of a source, with names that can be stored."""
    return map(printable, source(name)(options))


def recognised(location: str) -> str:
    """The source of what is at ``location``."""
    for name, entry in plugins.registered(plugins.SOURCES).items():
        recognises = getattr(import_module(entry.module), "recognises", None)
        if recognises is not None and recognises(location):
            return name
    return "folder"
