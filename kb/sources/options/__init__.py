"""Where each framework declares its options. The function of ``some-framework`` is ``some_framework``: it gives the
options under each owner, a command or a class. The first owner is the main one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from trainmedic.kb.errors import NotFound
from trainmedic.kb.frameworks.book import Entry, OptionsByOwner
from trainmedic.kb.frameworks.profiles import profiles
from trainmedic.kb.sources.options import classes, files, flags
from trainmedic.kb.sources.syntax import joined
from trainmedic.kb.sources.tree import SourceTree

Source: TypeAlias = Callable[[SourceTree], OptionsByOwner]
FRAMEWORKS: Mapping[str, Source] = {
    name.replace("_", "-"): found
    for module in (classes, flags, files)
    for name, found in vars(module).items()
    if getattr(found, "__module__", "") == module.__name__ and not name.startswith("_")
}
"""Framework → what reads its options."""


def extract(framework: str, tree: SourceTree, *others: SourceTree) -> dict[str, Entry]:
    """The options of a framework in a release: option → entry with ``in`` (owners) and ``*_by`` where they differ.

    ``others`` are packages that it builds on: classes that its own extend, and the framework whose parser it extends.
    Raises KeyError for a framework that cannot be read, `NotFound` where the release declares no options.
    """
    entries = _merge(FRAMEWORKS[framework](joined(tree, *others)))
    base = profiles()[framework].extends if framework in profiles() else ""
    given = [other for other in others if base and other.package == profiles()[base].package]
    return _with_options_of(entries, extract(base, *given), base) if given else entries


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
        raise NotFound("this release declares no options where its framework's are known to be")
    return merged


def _with_options_of(entries: Mapping[str, Entry], base: Mapping[str, Entry], framework: str) -> dict[str, Entry]:
    """The options with those of another framework that the parser takes as well.

    What the main command, the first owner, makes of an option counts; what another command does, only if the other
    framework lacks it.
    """
    others = {name: {**entry, "in": [framework]} for name, entry in base.items()}
    main = next(iter(entries.values()))["in"][0]
    return {**others, **{name: entry for name, entry in entries.items() if main in entry["in"] or name not in others}}
