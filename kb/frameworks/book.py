"""Writing option catalogues: one text for each framework, one option on each line.

Each line is JSON: the first has the framework's releases, interned lists, and the names of its options; the others are
one option each, in the order of the names. The reader (`kb.frameworks.tables`) parses only the requested options, so a
check never pays for the whole text.

An option is its life (first and last release that had it, last null while it is there, ``true`` third where it was
away in between) and its runs: ``[from, to, info]`` over the indices of the catalogued releases it was the same in. Of
all runs but the first ``info`` has what differs from the run before; what it does not have any more is null.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from trainmedic.kb.frameworks.tables import Table
from trainmedic.kb.versions import bare, version_key

Entry: TypeAlias = dict[str, Any]
"""One option at one release: type, default, choices, aliases, nargs, action, deprecated, in, *_by."""
OptionsByOwner: TypeAlias = dict[str, dict[str, Entry]]
"""Owner → option → entry; an owner is a command or a class."""

INFO = (
    *("type", "default", "choices", "aliases", "nargs", "action", "deprecated", "ge", "le"),
    *("default_by", "type_by", "choices_by"),
)


@dataclass(slots=True)
class Book:
    """All catalogued releases of one framework, in memory.

    ``releases`` maps release → option → entry; ``examined`` lists every release that ``lives`` were read from.
    """

    framework: str
    releases: dict[str, dict[str, Entry]] = field(default_factory=dict)
    examined: list[str] = field(default_factory=list)
    lives: dict[str, list[Any]] = field(default_factory=dict)

    def add(self, version: str, options: Mapping[str, Entry]) -> None:
        """Put one release in, and move the lives of its options to match it."""
        version = bare(version)
        wanted = version_key(version)
        known = self.releases.get(
            max((v for v in self.releases if version_key(v) < wanted), key=version_key, default="")
        )
        self.releases[version] = {
            name: _in_order_of(entry, known[name]) if known and name in known else dict(entry)
            for name, entry in options.items()
        }
        if version not in self.examined:
            self.examined = ordered([*self.examined, version])
        newest = self.examined[-1]
        for name in sorted({*options, *self.lives}):
            self.lives[name] = _life(self, name, version, name in options, newest)


def _in_order_of(entry: Entry, before: Entry) -> Entry:
    """An entry with its owners in the order of an earlier release; the first one's values are those of the option."""
    owners = [owner for owner in before["in"] if owner in entry["in"]]
    owners += [owner for owner in entry["in"] if owner not in owners]
    same = {**entry, "in": owners}
    for part in ("default", "type", "choices"):
        special = same.pop(f"{part}_by", {})
        values = {owner: special.get(owner, entry.get(part)) for owner in owners}
        first = values[owners[0]]
        if part in entry or first is not None:
            same[part] = first
        if others := {owner: value for owner, value in values.items() if value != first}:
            same[f"{part}_by"] = others
    return same


def ordered(versions: Sequence[str]) -> list[str]:
    """Release numbers, oldest first."""
    return sorted(versions, key=version_key)


def _life(book: Book, name: str, version: str, present: bool, newest: str) -> list[Any]:
    """The life of one option after ``version`` was found to have it or not."""
    old = book.lives.get(name)
    if old is None:
        return [version, None if version == newest else version]
    first, last, gap = old[0], old[1], len(old) > 2
    where = version_key(version)
    if present:
        if where < version_key(first):
            gap = gap or book.examined.index(first) - book.examined.index(version) > 1
            first = version
        if last is not None and where > version_key(last):
            gap = gap or book.examined.index(version) - book.examined.index(last) > 1
            last = None if version == newest else version
    elif last is None and version == newest:
        last = book.examined[-2] if len(book.examined) > 1 else version
    elif version_key(first) < where and (last is None or where < version_key(last)):
        gap = True
    return [first, last, True] if gap else [first, last]


def text_of(book: Book) -> str:
    """One framework's text; the same book always gives the same text."""
    versions = ordered(list(book.releases))
    owner_sets: dict[tuple[str, ...], int] = {}
    lines: list[str] = []
    names = sorted({name for options in book.releases.values() for name in options} | set(book.lives))
    for name in names:
        runs = _differences(_runs([book.releases[version].get(name) for version in versions], owner_sets))
        lines.append(_dump([book.lives.get(name) or [versions[runs[0][0]], None], runs]))
    meta = {
        "framework": book.framework,
        "versions": versions,
        "examined": book.examined or versions,
        "owners": list(owner_sets),
        "names": names,
    }
    return "\n".join((_dump(meta), *lines))


def _runs(entries: Sequence[Entry | None], owner_sets: dict[tuple[str, ...], int]) -> list[list[Any]]:
    runs: list[list[Any]] = []
    for index, entry in enumerate(entries):
        if entry is None:
            continue
        # Interned: thousands of options share a few lists of owners.
        owners = owner_sets.setdefault(tuple(entry.get("in", ())), len(owner_sets))
        info: dict[str, Any] = {key: entry[key] for key in INFO if entry.get(key) is not None}
        info["in"] = owners
        if runs and runs[-1][1] == index - 1 and runs[-1][2] == info:
            runs[-1][1] = index
        else:
            runs.append([index, index, info])
    return runs


def _differences(runs: Iterable[list[Any]]) -> list[list[Any]]:
    known: dict[str, Any] = {}
    found = []
    for start, stop, info in runs:
        changed = {key: value for key, value in info.items() if key not in known or repr(known[key]) != repr(value)}
        found.append([start, stop, {**changed, **dict.fromkeys(sorted(known.keys() - info.keys()))}])
        known = info
    return found


def book_of(known: Table) -> Book:
    """All that is catalogued of a framework."""
    book = Book(framework=known.framework, examined=list(known.examined))
    book.releases = {version: known.options(version) for version in known.versions}
    book.lives = {name: line["life"] for name in known.names if (line := known.line(name)) is not None}
    return book


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=False)
