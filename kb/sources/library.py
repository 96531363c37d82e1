"""Look-ups in the source at hand: bounded, and each result with its package, version, file and lines.

Whoever asks may be a stranger, so that of what is installed only packages that train models are read.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path

from trainmedic.kb.confined import Confined, Exceeded
from trainmedic.kb.error_messages import packages
from trainmedic.kb.errors import InvalidRequest, NotFound, SourceError
from trainmedic.kb.frameworks.profiles import profiles
from trainmedic.kb.sources.changes import Function, function_changes, message_changes, option_changes
from trainmedic.kb.sources.derived import Derived
from trainmedic.kb.sources.options import FRAMEWORKS
from trainmedic.kb.sources.search import Found, Lines, compiled, diff, find, path_of, symbol
from trainmedic.kb.sources.selection import canonical, parsed
from trainmedic.kb.sources.sources import Mode, Sources
from trainmedic.kb.sources.tree import SourceTree

MOST_MATCHES = 40
MOST_LINES = 120
"""Lines of source, or of a diff, in one result."""
MOST_WIDE = 240
"""Code points of a line."""
MOST_LISTED = 25
"""Changes of one kind."""
SEARCH_S = 3.0
"""The longest that a search looks at files; it ends with what it found."""
AT_ONCE = 2
"""Searches: one that must be killed holds up no one else's."""
KILLED_S = 6.0
"""The longest that a search takes at all: one line may hold an expression for ever, and its process is killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedUp:
    """``text`` cites where each part is; ``passages`` are the places. ``complete`` is false where it was cut."""

    text: str
    passages: tuple[Lines, ...] = ()
    complete: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedAt:
    """A name in the code of a release. ``path`` is empty where several files define it."""

    name: str
    package: str
    version: str
    path: str
    line: int


class Library:
    """Look-ups in the source that is at hand. All of them raise `NotFound`, `InvalidRequest` and `SourceError`."""

    def __init__(self, sources: Sources) -> None:
        self.derived = Derived(sources)
        self.sources = sources
        folder, mode, environments = sources.at_hand()
        self._here = Sources(folder, mode, environments=environments) if sources.mode == "index" else sources
        self._confined = Confined(KILLED_S, processes=AT_ONCE)
        self._tree = lru_cache(maxsize=8)(self._opened)
        self._changes = lru_cache(maxsize=4)(self._changed)
        self._names = lru_cache(maxsize=8)(self.derived.names)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Until the context closes, which ends what still searches."""
        try:
            yield
        finally:
            self.close()

    def close(self) -> None:
        """End what still searches."""
        self._confined.close()

    def tree(self, package: str, version: str) -> SourceTree:
        """The source of a release, which stays the same for some calls."""
        return self._open(canonical(package), str(parsed(version)), self.sources)

    def here(self, package: str, version: str | None) -> SourceTree | None:
        """The same, by default of what is at hand; None if it would have to be fetched, or cannot be read."""
        try:
            version = version or self.at_hand(package)
            return self._open(canonical(package), str(parsed(version)), self._here) if version else None
        except (NotFound, InvalidRequest, SourceError):
            return None

    def at_hand(self, package: str) -> str | None:
        """The version that is read where none is named: what is installed, or the newest stored."""
        name = canonical(package)
        if name in trained_with():
            for here in self.sources.installed.get(name, ()):
                return here.version
        stored = self.sources.store.releases(name)
        return stored[-1].version if stored else None

    def named(self, name: str, versions: Mapping[str, str], near: str = "") -> NamedAt | None:
        """Where these releases have a name: its definition in the first that defines it, else its first use.

        Of several definitions the one in a file with ``near`` in its name is meant; without one it is known, but not
        where. A member is looked for in its class.
        """
        owner, _, last = name.rpartition(".")
        if owner.rpartition(".")[2][:1].isupper():
            return self._member(owner.rpartition(".")[2], last, versions, near)
        used: NamedAt | None = None
        for package, version in versions.items():
            tree = self.here(package, version)
            if tree is None:
                continue
            names = self._names(tree)
            places = names.places(name)
            if not places.at and last != name:
                places = names.places(last)
            if not places.at:
                continue
            meant = [each for each in places.at if near and near in each[0].rpartition("/")[2]] or places.at
            path, line = meant[0] if len(meant) == 1 else ("", 0)
            found = NamedAt(name=name, package=tree.package, version=tree.version, path=path, line=line)
            if places.defined:
                return found
            used = used or found
        return used

    def _member(self, owner: str, last: str, versions: Mapping[str, str], near: str) -> NamedAt | None:
        found = self.named(owner, versions, near)
        tree = self.here(found.package, found.version) if found is not None else None
        if found is None or tree is None or not found.path:
            return found
        try:
            line = symbol(tree, found.path, f"{owner}.{last}").first
        except NotFound:  # it may be inherited
            return self.named(last, versions, near) and found
        return replace(found, name=f"{owner}.{last}", line=line)

    def grep(self, package: str, version: str, pattern: str, below: str = "") -> LookedUp:
        """The lines that a regular expression matches, in files whose path begins with ``below``."""
        compiled(pattern)
        tree = self.tree(package, version)
        try:
            found = self._confined.run(_searched, self.sources.at_hand(), tree.package, tree.version, pattern, below)
        except Exceeded:
            raise InvalidRequest("the search could not be finished", hint="a simpler pattern, or fewer files") from None
        head = f"{tree.package} {tree.version}: {_counted(found)}"
        lines = (f"{_place(match)}: {match.text.strip()[:MOST_WIDE]}" for match in found.matches)
        return LookedUp(text="\n".join((head, *lines)), passages=found.matches, complete=found.complete)

    def read(self, package: str, version: str, path: str = "", name: str = "", lines: str = "") -> LookedUp:
        """Lines of a file or of a symbol. ``lines`` such as ``800-840`` count in the file."""
        tree = self.tree(package, version)
        path, name = located(tree, path, name)
        whole = symbol(tree, path, name)
        first, last = _range(lines) or (whole.first, whole.last)
        text = whole.text.split("\n") if not lines else symbol(tree, path).text.split("\n")
        start = whole.first if not lines else 1
        end = min(last, first + MOST_LINES - 1)
        shown = text[first - start : end - start + 1]
        if not shown:
            raise NotFound(f"{path} has {len(text)} lines")
        passage = replace(whole, first=first, text="\n".join(shown), symbol=name)
        complete = end >= min(last, len(text) + start - 1)
        return LookedUp(text=numbered(passage, complete=complete), passages=(passage,), complete=complete)

    def diff(self, package: str, before: str, after: str, path: str = "", name: str = "") -> LookedUp:
        """The changes of a symbol or file between two releases."""
        old, new = self.tree(package, before), self.tree(package, after)
        try:
            path, name = located(new, path, name)
        except NotFound:
            path, name = located(old, path, name)
        found = diff(old, new, path, name)
        passages = tuple(side for side in (found.before, found.after) if side is not None)
        if not found.text:
            text = f"{old.package}: {name or path} is the same in {old.version} and {new.version}"
            return LookedUp(text=text, passages=passages)
        lines = [line[:MOST_WIDE] for line in found.text.splitlines()]
        text = "\n".join((*lines[:MOST_LINES], *(("…",) if len(lines) > MOST_LINES else ())))
        return LookedUp(text=text, passages=passages, complete=len(lines) <= MOST_LINES)

    def changes(self, package: str, before: str, after: str, about: str = "") -> LookedUp:
        """Options, defaults, messages and functions that changed; only those that name ``about``, if it is given."""
        old, new = self.tree(package, before), self.tree(package, after)
        parts, complete = [f"{old.package} {old.version} → {new.version}"], True
        for title, lines in self._changes(old, new):
            named = [line[:MOST_WIDE] for line in lines if about.casefold() in line.casefold()]
            if named:
                more = len(named) - MOST_LISTED
                complete &= more <= 0
                shown = (*named[:MOST_LISTED], *((f"… {more} more",) if more > 0 else ()))
                parts.append("\n".join((f"{title}:", *(f"- {line}" for line in shown))))
        if len(parts) == 1:
            parts.append(f"nothing that names {about} changed" if about else "nothing changed")
        return LookedUp(text="\n".join(parts), complete=complete)

    def _changed(self, old: SourceTree, new: SourceTree) -> tuple[Listed, ...]:
        kept = self.derived.kept(new, "changes", lambda: json.dumps(_kinds(old, new)), old.digest)
        return tuple((title, lines) for title, lines in json.loads(kept))

    def _open(self, package: str, version: str, sources: Sources) -> SourceTree:
        tree = self._tree(package, version, sources)
        if tree.origin != "installed" and not self.sources.store.has(package, version):
            self._tree.cache_clear()  # it had to go
            return self._tree(package, version, sources)
        return tree

    def _opened(self, package: str, version: str, sources: Sources) -> SourceTree:
        return sources.open(package, version) if package in trained_with() else sources.store.open(package, version)


@cache
def trained_with() -> frozenset[str]:
    """The packages that may be read wherever they are."""
    return frozenset({*packages.names(), *(canonical(each.package) for each in profiles().values() if each.package)})


def located(tree: SourceTree, path: str, name: str) -> tuple[str, str]:
    """File and name of a definition: ``name`` alone may be dotted, with its module or without. Raises `NotFound`."""
    if path:
        return path_of(tree, path), name
    if not name:
        raise InvalidRequest("a path or the name of a symbol is needed")
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        stem = "/".join(parts[:count])
        for module in (f"{stem}.py", f"{stem}/__init__.py"):
            if module in tree:
                return module, ".".join(parts[count:])
    return _defining(tree, name), name


def numbered(passage: Lines, *, complete: bool = True) -> str:
    """A passage under its place, each line with its number."""
    lines = (
        f"{number}: {line[:MOST_WIDE]}" for number, line in enumerate(passage.text.split("\n"), start=passage.first)
    )
    named = f" {passage.symbol}" if passage.symbol else ""
    end = () if complete else ("…",)
    return "\n".join((f"{passage.package} {passage.version} {_place(passage)}{named}", *lines, *end))


def _place(lines: Lines) -> str:
    return f"{lines.path}:{lines.first}" + (f"-{lines.last}" if lines.last > lines.first else "")


def _counted(found: Found) -> str:
    count = len(found.matches)
    if found.complete:
        return f"{count} lines" if count != 1 else "1 line"
    return f"the first {count} lines; there may be more"


def _range(lines: str) -> tuple[int, int] | None:
    """``800-840`` or ``800``; None for all."""
    if not lines.strip():
        return None
    first, dash, last = (part.strip() for part in lines.partition("-"))
    if not first.isdecimal() or (dash and not last.isdecimal()) or len(first + last) > 14:
        raise InvalidRequest("lines: give a range such as 800-840")
    start, end = int(first), int(last) if dash else int(first)
    if not 1 <= start <= end:
        raise InvalidRequest("lines: give a range such as 800-840")
    return start, end


def _defining(tree: SourceTree, name: str) -> str:
    """The file that defines a name, shared code before that of single models."""
    first = name.partition(".")[0]
    wanted = compiled(rf"^\s*(class|def|async def) {first}\b|^{first}\b *[:=]") if first.isidentifier() else None
    for path in sorted(tree.paths(), key=lambda path: ("/models/" in path, path.count("/"), path)):
        if wanted is None or not path.endswith(".py"):
            continue
        text = tree.text(path)
        if first in text and any(wanted.match(line) for line in text.split("\n") if first in line):
            try:
                symbol(tree, path, name)
            except NotFound:
                continue
            return path
    raise NotFound(f"{tree.package} {tree.version} defines no {name}", hint="grep for it")


def _searched(
    sources: tuple[Path, Mode, tuple[Path, ...]], package: str, version: str, pattern: str, below: str
) -> Found:
    """Search in a process of its own, which fetches nothing."""
    folder, mode, environments = sources
    tree = Sources(folder, mode, environments=environments).open(package, version)
    return find(tree, pattern, below=below, most=MOST_MATCHES, seconds=SEARCH_S)


Listed = tuple[str, Sequence[str]]


def _kinds(old: SourceTree, new: SourceTree) -> tuple[Listed, ...]:
    return (*_options(old, new), *_messages(old, new), _functions(old, new))


def _options(old: SourceTree, new: SourceTree) -> Iterator[Listed]:
    framework = next((name for name in FRAMEWORKS if canonical(profiles()[name].package) == old.package), None)
    if framework is None:
        return
    try:
        found = option_changes(framework, old, new)
    except NotFound:
        return
    renamed = {rename.old: rename.new for rename in found.renamed}
    yield "options renamed", [f"{old} → {new}" for old, new in renamed.items()]
    yield (
        "defaults changed",
        [
            f"{each.option}{f' of {each.owner}' if each.owner else ''}: {each.before!r} → {each.after!r}"
            for each in found.defaults
        ],
    )
    yield "options removed", [name for name in found.removed if name not in renamed]
    yield "options added", [name for name in found.added if name not in renamed.values()]


def _messages(old: SourceTree, new: SourceTree) -> Iterator[Listed]:
    found = message_changes(*changed_alone(old, new))
    for title, placed in (("messages new", found.new), ("messages gone", found.gone)):
        yield (
            title,
            [
                f"{each.path}:{each.message.line} {each.message.kind}: {each.message.template}"
                + (f" (if {each.message.condition})" if each.message.condition else "")
                for each in placed
            ],
        )


def _functions(old: SourceTree, new: SourceTree) -> Listed:
    return "functions changed", [_signature(each) for each in function_changes(*changed_alone(old, new))]


def _signature(each: Function) -> str:
    if each.before is None or each.after is None:
        return f"{each.path} {each.name} ({'new' if each.before is None else 'gone'})"
    return f"{each.path} {each.name}" + (f": {each.before} → {each.after}" if each.before != each.after else "")


def changed_alone(old: SourceTree, new: SourceTree) -> tuple[SourceTree, SourceTree]:
    """Both releases with the files that differ, without those of single models."""
    sides = []
    for tree, other in ((old, new), (new, old)):
        files = {
            path: digest
            for path, digest in tree.files.items()
            if other.files.get(path) != digest and "/models/" not in path.replace("/models/auto/", "/")
        }
        sides.append(replace(tree, files=files))
    return sides[0], sides[1]
