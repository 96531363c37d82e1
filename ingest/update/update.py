"""Reads the releases of one package that came since, writes what is derived from them, and says what changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from trainmedic.ingest.update import committed, quoted
from trainmedic.ingest.update.anchors import Spots, every_anchor, problems
from trainmedic.ingest.update.difference import drafts
from trainmedic.ingest.update.harvest import DefectCandidate, candidates, known_names
from trainmedic.ingest.update.releases import Published, Step, catalogues, indexed
from trainmedic.kb.error_messages import packages
from trainmedic.kb.errors import NotFound, SourceError
from trainmedic.kb.frameworks.profiles import profiles
from trainmedic.kb.frameworks.tables import Table, side, table
from trainmedic.kb.pages.defect import defects_of
from trainmedic.kb.sources.changes import (
    Function,
    MessageChanges,
    OptionChanges,
    function_changes,
    message_changes,
    option_changes,
)
from trainmedic.kb.sources.messages import is_of_model
from trainmedic.kb.sources.options import extract
from trainmedic.kb.sources.syntax import joined
from trainmedic.kb.sources.tree import Release, SourceTree
from trainmedic.kb.versions import version_key


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """The changes of a package from ``before`` to the last of ``after``.

    ``options`` by framework; ``statements`` are places of pages whose defaults are not true any more, ``mentions``
    those that name a removed option, with what they say; ``anchors`` are those of pages that do not
    hold any more. ``problem`` says why nothing was read.
    """

    package: str
    before: Release | None = None
    after: tuple[Release, ...] = ()
    options: Mapping[str, OptionChanges] | None = None
    messages: MessageChanges | None = None
    functions: tuple[Function, ...] = ()
    statements: tuple[str, ...] = ()
    mentions: tuple[str, ...] = ()
    anchors: tuple[str, ...] = ()
    drafts: tuple[DefectCandidate, ...] = ()
    problem: str = ""


def update(published: Published, package: str, *, since: str = "", write: bool = False) -> Update:
    """``since`` is a day from which on releases are compared; written is always what no committed file has.

    A package that cannot be read does not keep the others from being read.
    """
    try:
        return _updated(published, package, since, write)
    except (NotFound, SourceError) as error:
        return Update(package=package, problem=str(error))


def _updated(published: Published, package: str, since: str, write: bool) -> Update:
    step, news = published.step(package, since), published.step(package)
    if not step.after:
        return Update(package=package, before=step.before)
    trees, added = (
        [published.tree(package, each.version) for each in (those.before, *those.after)] for those in (step, news)
    )
    catalogued = _Catalogued(published, package, added)
    found = _compared(published, step, trees, catalogued)
    if write and news.after:
        catalogued.write()
        _write_messages(published, news)
    return found


class _Catalogued:
    """The catalogues of a package with its new releases; the first tree is one that they have, or begin with."""

    def __init__(self, published: Published, package: str, trees: Sequence[SourceTree]) -> None:
        self.published = published
        self.package = package
        self.trees = trees
        self.texts = {name: self._text(name) for name in catalogues(package)}

    def _text(self, framework: str) -> str:
        read = [(tree.version, extract(framework, self.whole(framework, tree))) for tree in self.trees]
        known = table(framework)
        return committed.with_options(known.text if known else committed.begun(framework, *read[0]), read[0], read[1:])

    def whole(self, framework: str, tree: SourceTree) -> SourceTree:
        """A release with the one of the package that it builds on: the newest when it was published."""
        other = profiles()[framework].builds_on
        if not other:
            return tree
        day = tree.released or ""
        releases = self.published.releases(other)
        fitting = [each.version for each in releases if not day or (each.released or day) <= day]
        return joined(tree, self.published.tree(other, (fitting or [releases[0].version])[-1]))

    def write(self) -> None:
        days = {tree.version: tree.released for tree in self.trees if tree.released}
        wanted = {name for by_release in side("pins").values() for each in by_release.values() for name in each}
        for framework, text in self.texts.items():
            committed.write_options(framework, text, self.trees[-1])
            committed.add_side("dates", framework, days)
            for before, after in zip(self.trees, self.trees[1:], strict=False):
                changes = option_changes(framework, self.whole(framework, before), self.whole(framework, after))
                committed.add_renames(framework, before.version, after.version, changes)
                if framework in side("pins"):
                    required = self.published.sources.requirements(self.package, after.version)
                    committed.add_side("pins", framework, {after.version: committed.pins_of(required, wanted)})


def _write_messages(published: Published, step: Step) -> None:
    """Nothing for a package of which only options are known."""
    known = indexed(step.package)
    new = [each.version for each in step.after if known and version_key(each.version) > version_key(known[-1])]
    for version in new:
        committed.add_messages(published.tree(step.package, version))


def _compared(published: Published, step: Step, trees: Sequence[SourceTree], catalogued: _Catalogued) -> Update:
    first, last = trees[0], trees[-1]
    options = {
        name: option_changes(name, catalogued.whole(name, first), catalogued.whole(name, last))
        for name in catalogued.texts
    }
    functions = _training_functions(first, last)
    return Update(
        package=step.package,
        before=step.before,
        after=step.after,
        options=options,
        messages=message_changes(first, last) if step.package in packages.names() else None,
        functions=functions,
        statements=tuple(_statements(catalogued.texts)),
        mentions=tuple(place for name, each in options.items() for place in quoted.named(each.removed, name)),
        anchors=tuple(_anchors(published, step.package)),
        drafts=tuple(_drafts(published, step, trees)),
    )


def _training_functions(before: SourceTree, after: SourceTree) -> tuple[Function, ...]:
    """The changed functions of the code that training runs, single models apart."""
    if before.package not in packages.names():
        return ()
    about = packages.package(before.package)

    def on_path(tree: SourceTree) -> SourceTree:
        files = {path: text for path, text in tree.files.items() if about.has(path) and not is_of_model(path)}
        return replace(tree, files=files)

    return function_changes(on_path(before), on_path(after))


def _statements(texts: Mapping[str, str]) -> Iterator[str]:
    """What pages say that does not hold in the new releases."""
    every = tuple(quoted.quotes())
    there = set(quoted.faults(every))
    yield from (
        each for each in quoted.faults(every, {name: Table(text) for name, text in texts.items()}) if each not in there
    )


def _anchors(published: Published, package: str) -> Iterator[str]:
    mine = (anchor for anchor in every_anchor() if anchor.package == package)
    for anchor, why, is_broken in problems(Spots(published), mine):
        yield f"{anchor.page}:{anchor.line}: {'' if is_broken else 'not read: '}{why}"


def _drafts(published: Published, step: Step, trees: Sequence[SourceTree]) -> Iterator[DefectCandidate]:
    history = published.histories.get(step.package)
    if history is not None:
        yield from candidates(history, step.before.released or "", known_names(defects_of([step.package])))
        return
    for end in range(2, len(trees) + 1):
        yield from drafts(_training_functions(*trees[end - 2 : end]), trees[:end])
