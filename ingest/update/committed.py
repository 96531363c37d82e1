"""Puts what is derived from a release into the committed files of `kb.frameworks` and `kb.error_messages`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet

from trainmedic.kb.data_files import Texts, write_texts
from trainmedic.kb.error_messages import packages
from trainmedic.kb.error_messages.index import REST, REST_BLOCK, SAID, shipped_tables
from trainmedic.kb.error_messages.tables import BETWEEN
from trainmedic.kb.frameworks.book import Book, Entry, book_of, text_of
from trainmedic.kb.frameworks.tables import HELP, OPTIONS, Table
from trainmedic.kb.sources.changes import OptionChanges
from trainmedic.kb.sources.help import help_texts
from trainmedic.kb.sources.messages import with_release
from trainmedic.kb.sources.tree import SourceTree
from trainmedic.kb.versions import version_key

KNOWLEDGE = Path(__file__).resolve().parents[2] / "kb"
_OF_DEVELOPERS = ("dev", "test", "doc", "lint", "quality")
"""Beginnings of the extras that no run installs."""
_LESS_READ = ("aliases", "type")
"""What the catalogue may know better than a release's source tells."""
_COMPACT = {"pins", "renames"}
"""The side tables without blanks."""

Read = Mapping[str, Entry]
"""The options that a release declares, as far as its source tells."""


def begun(framework: str, release: str, options: Read) -> str:
    """The text of a catalogue with one release."""
    book = Book(framework=framework)
    book.add(release, options)
    return text_of(book)


def with_options(text: str, known: tuple[str, Read], releases: Sequence[tuple[str, Read]]) -> str:
    """The text of a catalogue with further releases, by what changed since ``known``, one that it has.

    Not all that the catalogue has of a release need be read of it: some of that stands in files that are not installed.
    An option that is read of neither of two releases stays as it is.
    """
    book = book_of(Table(text))
    version, old = known
    stored = book.releases[version]
    for version, new in releases:
        come = {name: entry for name, entry in new.items() if name not in stored and name not in old}
        gone = old.keys() - new.keys()
        stayed = {name: _next(stored[name], old.get(name), new.get(name)) for name in stored.keys() - gone}
        stored = dict(sorted({**stayed, **come}.items()))
        book.add(version, stored)
        old = new
    return text_of(book)


def _next(stored: Entry, old: Entry | None, new: Entry | None) -> Entry:
    if new is None or old is None or all(_part(old, part) == _part(new, part) for part in {*old, *new}):
        return stored
    kept: Entry = {part: stored[part] for part in _LESS_READ if part in stored and old.get(part) == new.get(part)}
    return {**new, **kept}


def _part(entry: Entry, part: str) -> object:
    return set(entry[part]) if part == "in" else entry.get(part)


def write_options(framework: str, text: str, tree: SourceTree, knowledge: Path = KNOWLEDGE) -> None:
    """Replace a catalogue, and what is said of its options by what a release says if texts of it are committed."""
    _put(knowledge / OPTIONS, framework, text)
    if framework not in Texts(knowledge / HELP):
        return
    known = Table(text)
    texts = help_texts(tree, known.names, {owner for group in known.owner_sets for owner in group})
    _put(knowledge / HELP, framework, json.dumps({"release": tree.version, "options": texts}, ensure_ascii=False))


def _put(path: Path, name: str, text: str) -> None:
    write_texts(path, {**Texts(path), name: text})


def add_messages(tree: SourceTree, knowledge: Path = KNOWLEDGE) -> None:
    """Add the messages of a release that is newer than all that were read. Raises `InvalidRequest` otherwise."""
    said, rest = (dict(Texts(knowledge / name)) for name in (SAID, REST))
    known = next((each for each in shipped_tables(said, rest) if each.package == tree.package), None)
    text = with_release(known, tree, packages.package(tree.package))
    said[tree.package], rest[tree.package] = text.split(BETWEEN)
    write_texts(knowledge / SAID, said)
    write_texts(knowledge / REST, rest, REST_BLOCK)


def add_side(name: str, framework: str, entries: Mapping[str, Any], knowledge: Path = KNOWLEDGE) -> None:
    """Add the days or requirements of a framework's releases to a side table (`kb.frameworks.tables.side`)."""
    table, path = _side(name, knowledge)
    every = {**table.get(framework, {}), **entries}
    table[framework] = {release: every[release] for release in sorted(every, key=version_key)}
    path.write_text(_side_text(table, name in _COMPACT), encoding="utf-8")


def add_renames(framework: str, before: str, after: str, changes: OptionChanges, knowledge: Path = KNOWLEDGE) -> None:
    """Add the options that a release accepts under another name, or says are named otherwise now."""
    pairs = {each.old: each.new for each in changes.renamed if each.evidence != "help"}
    if pairs:
        table, path = _side("renames", knowledge)
        table.setdefault(framework, []).append({"from_last": before, "to_first": after, "map": {"*": pairs}})
        path.write_text(_side_text(table, compact=True), encoding="utf-8")


def _side(name: str, knowledge: Path) -> tuple[dict[str, Any], Path]:
    path = knowledge / "frameworks" / "data" / f"_{name}.json"
    table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return table, path


def _side_text(table: Mapping[str, Any], compact: bool) -> str:
    """One framework on each line."""
    separators, indent = ((",", ":"), "") if compact else (None, " ")
    lines = (f"{indent}{json.dumps(name)}: {json.dumps(table[name], separators=separators)}" for name in sorted(table))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def pins_of(requirements: Iterable[str], wanted: Iterable[str]) -> dict[str, str]:
    """Package → range: what is always required, else what the first extra requires; what any of them excludes."""
    names, found = frozenset(wanted), dict[str, list[SpecifierSet]]()
    known = [each for each in map(_requirement, requirements) if each is not None and each.name in names]
    for requirement in sorted(known, key=lambda each: bool(_extra(each))):
        if requirement.specifier and not _extra(requirement).startswith(_OF_DEVELOPERS):
            found.setdefault(requirement.name, []).append(requirement.specifier)
    return {name: _joined(found[name]) for name in sorted(found)}


def _requirement(text: str) -> Requirement | None:
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def _extra(requirement: Requirement) -> str:
    return str(requirement.marker or "").partition("extra == ")[2].strip('"')


def _joined(ranges: Sequence[SpecifierSet]) -> str:
    """Bounds before what is excluded."""
    excluded = {str(each) for others in ranges[1:] for each in others if each.operator == "!="}
    return ",".join(sorted({*map(str, ranges[0]), *excluded}, key=lambda each: (each[0] == "!", each[0] == "<", each)))
