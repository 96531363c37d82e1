"""The committed catalogues with further releases: options, what the source says of them, days, requirements, renames."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet

from trainmedic.kb.frameworks.book import Entry, book_of, text_of
from trainmedic.kb.frameworks.profiles import FOLDER
from trainmedic.kb.frameworks.tables import Table
from trainmedic.kb.sources.help import help_texts
from trainmedic.kb.sources.tree import SourceTree

_OF_DEVELOPERS = ("dev", "test", "doc", "lint", "quality")
"""Beginnings of the extras that no run installs."""
Pins = Mapping[str, Mapping[str, Mapping[str, str]]]


def with_releases(known: Table, read: Sequence[tuple[str, Mapping[str, Entry]]]) -> str:
    """The text of a catalogue with the releases after the first of ``read``, by what changed from one to the next.

    What is read of the first need not be all that the catalogue has of it: some of that comes from files that are not
    installed. So an option that is read of neither release stays as it is.
    """
    book = book_of(known.text)
    (at, old), *rest = read
    stored = book.releases[at]
    for version, new in rest:
        stored = {
            **{name: _next(entry, old.get(name), new.get(name)) for name, entry in stored.items() if _stays(name, old, new)},
            **{name: entry for name, entry in new.items() if name not in stored and name not in old},
        }
        book.add(version, stored)
        old = new
    return text_of(book)


def _stays(name: str, old: Mapping[str, Entry], new: Mapping[str, Entry]) -> bool:
    return name in new or name not in old


def _next(stored: Entry, old: Entry | None, new: Entry | None) -> Entry:
    if new is None or old is None:
        return stored
    changed = {part for part in {*old, *new} if _part(old, part) != _part(new, part)}
    if not changed:
        return stored
    kept = {part: stored[part] for part in ("aliases", "type") if part in stored and part not in changed}
    return {**new, **kept}


def _part(entry: Entry, part: str) -> object:
    return set(entry[part]) if part == "in" else entry.get(part)


def help_text(known: Table, tree: SourceTree) -> str:
    """The text of ``help.json``: what a release says of its options."""
    owners = {name for group in known.owner_sets for name in group}
    texts = help_texts(tree, known.names, owners)
    lines = [f"{json.dumps(name)}: {json.dumps(text, ensure_ascii=False)}" for name, text in texts.items()]
    body = ",\n".join(lines)
    return f'{{"release": {json.dumps(tree.version)}, "options": {{\n{body}\n}}}}\n'


def pins_of(requirements: Iterable[str], packages: Iterable[str]) -> dict[str, str]:
    """Package → range: what is always required, else what the first extra requires; what is excluded anywhere."""
    wanted, found = frozenset(packages), dict[str, list[SpecifierSet]]()
    for always in (True, False):
        for requirement in map(_requirement, requirements):
            if requirement is None or requirement.name not in wanted or not requirement.specifier:
                continue
            marker = str(requirement.marker or "")
            extra = marker.rpartition("extra == ")[2].strip('"') if "extra ==" in marker else ""
            if bool(extra) is not always and not extra.startswith(_OF_DEVELOPERS):
                found.setdefault(requirement.name, []).append(requirement.specifier)
    return {name: _joined(found[name]) for name in sorted(found)}


def _requirement(text: str) -> Requirement | None:
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def _joined(ranges: Sequence[SpecifierSet]) -> str:
    """As the files write a range: bounds before what is excluded."""
    excluded = {str(each) for others in ranges[1:] for each in others if each.operator == "!="}
    return ",".join(sorted({*map(str, ranges[0]), *excluded}, key=lambda each: (each[0] == "!", each[0] == "<", each)))


def side_text(table: Mapping[str, Any], compact: bool) -> str:
    """The text of a side table (`kb.frameworks.tables.side`): one framework on each line."""
    separators = (",", ":") if compact else None
    lines = [f"{json.dumps(name)}: {json.dumps(table[name], separators=separators)}" for name in sorted(table)]
    indent = "" if compact else " "
    return "{\n" + ",\n".join(indent + line for line in lines) + "\n}\n"


def write(name: str, text: str) -> None:
    """Replace a file below kb/frameworks."""
    (FOLDER / name).write_text(text, encoding="utf-8")
