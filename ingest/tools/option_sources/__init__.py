"""Where each framework declares its options. The module of ``some-framework`` is ``some_framework``.

It has ``options_by_owner(tree)``: the options under each owner, a command or a class. The first owner is the main one.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from typing import Protocol

from trainmedic.ingest.tools.extract_source import GitTree
from trainmedic.ingest.tools.extract_store import Entry, OptionsByOwner

FRAMEWORKS = {module.name.replace("_", "-"): module.name for module in pkgutil.iter_modules(__path__)}
"""Framework → its module."""


class OptionSource(Protocol):
    def options_by_owner(self, tree: GitTree) -> OptionsByOwner: ...


def extract(tree: GitTree, framework: str) -> dict[str, Entry]:
    """The options of a framework at a tag: option → entry with ``in`` (owners) and ``*_by`` where they differ.

    Raises KeyError for a framework that cannot be read, FileNotFoundError where the tag or its files are missing.
    """
    source: OptionSource = import_module(f"{__name__}.{FRAMEWORKS[framework]}")
    return _merge(source.options_by_owner(tree))


def _merge(owned: OptionsByOwner) -> dict[str, Entry]:
    """One entry for each option of several owners; the first owner's values, the others' only where they differ."""
    merged: dict[str, Entry] = {}
    for owner, options in owned.items():
        for name, entry in options.items():
            if name not in merged:
                merged[name] = {**entry, "in": [owner]}
                continue
            known = merged[name]
            known["in"].append(owner)
            for part in ("default", "type", "choices"):
                if entry.get(part) != known.get(part):
                    known.setdefault(f"{part}_by", {})[owner] = entry.get(part)
    if not merged:
        raise FileNotFoundError("no option declarations at this tag")
    return merged


def with_options_of(entries: Mapping[str, Entry], tree: GitTree, framework: str) -> dict[str, Entry]:
    """The options with those of another framework that the parser takes as well.

    What the main command, the first owner, makes of an option counts; what another command does, only if the other
    framework lacks it.
    """
    others = {name: {**entry, "in": [framework]} for name, entry in extract(tree, framework).items()}
    main = next(iter(entries.values()))["in"][0]
    return {**others, **{name: entry for name, entry in entries.items() if main in entry["in"] or name not in others}}
