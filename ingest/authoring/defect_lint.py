"""Whether the places that lists of defects name as fixes are there, in the stored source of releases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from trainmedic.kb.audit.defect import Defect
from trainmedic.kb.errors import NotFound, SourceError
from trainmedic.kb.model.page import PageProblem
from trainmedic.kb.sources.search import diff, symbol
from trainmedic.kb.sources.store import Store
from trainmedic.kb.sources.tree import SourceTree
from trainmedic.kb.versions import version_key


def lint_spots(defects: Iterable[Defect], places: Mapping[str, str], store: Store) -> Iterator[PageProblem]:
    """The problems of `Defect.spot`, each in the file of the defect; nothing of releases that are not stored."""
    for package, listed in groupby((each for each in defects if each.spot is not None), lambda each: each.package):
        trees = {pack.version: store.tree(pack) for pack in store.releases(package)}
        for defect in listed:
            for message in _problems(defect, trees):
                yield PageProblem(places[defect.id], 1, f"{defect.id}: fix: {message}")


def _problems(defect: Defect, trees: Mapping[str, SourceTree]) -> Iterator[str]:
    """``trees`` by version, ascending."""
    fixed = trees.get(defect.fixed or "")
    if fixed is None or defect.spot is None:
        return
    try:
        symbol(fixed, defect.spot.path, defect.spot.symbol)
        older = [tree for name, tree in trees.items() if version_key(name) < version_key(fixed.version)]
        if older and not diff(older[-1], fixed, defect.spot.path, defect.spot.symbol).text:
            yield f"{defect.spot.symbol} is the same in {older[-1].version} and {fixed.version}"
    except NotFound as error:
        yield f"{error}{f'; {error.hint}' if error.hint else ''}"
    except SourceError as error:
        yield str(error)
