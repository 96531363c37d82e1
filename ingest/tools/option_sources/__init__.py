"""Where each framework declares its options. The function of ``some-framework`` is ``some_framework``: it gives the
options under each owner, a command or a class. The first owner is the main one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from trainmedic.ingest.tools.extract_source import GitTree
from trainmedic.ingest.tools.extract_store import Entry, OptionsByOwner
from trainmedic.ingest.tools.option_sources import classes, files, flags

Source: TypeAlias = Callable[[GitTree], OptionsByOwner]
FRAMEWORKS: Mapping[str, Source] = {
    name.replace("_", "-"): found
    for module in (classes, flags, files)
    for name, found in vars(module).items()
    if getattr(found, "__module__", "") == module.__name__ and not name.startswith("_")
}
"""Framework → what reads its options."""


def extract(tree: GitTree, framework: str) -> dict[str, Entry]:
    """The options of a framework at a tag: option → entry with ``in`` (owners) and ``*_by`` where they differ.

    Raises KeyError for a framework that cannot be read, FileNotFoundError where the tag or its files are missing.
    """
    return _merge(FRAMEWORKS[framework](tree))


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
