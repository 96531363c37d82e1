"""The options that a release declares, where its framework's profile says that they are (``declares``)."""

from __future__ import annotations

from collections.abc import Mapping

from trainmedic.kb.errors import NotFound
from trainmedic.kb.frameworks.book import Entry, OptionsByOwner
from trainmedic.kb.frameworks.profiles import profiles
from trainmedic.kb.sources.options.declared import declared
from trainmedic.kb.sources.syntax import joined
from trainmedic.kb.sources.tree import SourceTree

FRAMEWORKS = tuple(profile.name for profile in profiles().values() if profile.declares)
"""Those whose options can be read."""


def extract(framework: str, tree: SourceTree, *others: SourceTree) -> dict[str, Entry]:
    """The options of a framework in a release: option → entry with ``in`` (owners) and ``*_by`` where they differ.

    ``others`` are packages that it builds on: classes that its own extend, and the framework whose parser it extends.
    Raises KeyError for a framework without a profile, `NotFound` where the release declares no options.
    """
    profile = profiles()[framework]
    entries = _merge(declared(joined(tree, *others), profile.declares))
    given = [other for other in others if profile.extends and other.package == profiles()[profile.extends].package]
    return _with_options_of(entries, extract(profile.extends, *given), profile.extends) if given else entries


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
