"""How far the knowledge of a package reaches, and whether a release lies within it.

Options and defaults are known of the releases that were read in full (`Table.versions`; one that is read on demand is
among these), and of those between two of them where both agree. Defects were collected up to a release that
``kb/defects/packages.toml`` names. Rules and cases speak of ranges; an open one holds as far as these two reach.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from trainmedic.kb.data_files import load_table, load_texts
from trainmedic.kb.frameworks.profiles import INHERITS, profiles
from trainmedic.kb.frameworks.tables import OPTIONS, Table, side, table
from trainmedic.kb.model.run import RunConfig, VersionFact
from trainmedic.kb.versions import bare, version_key


class Kind(StrEnum):
    """Known facts about a release."""

    OPTIONS = "options"
    DEFECTS = "defects"


class Standing(StrEnum):
    """The basis of a statement about a release."""

    READ = "read"
    BETWEEN = "between"  # not read, but the releases on either side were: it is known where these agree
    NEWER = "newer"
    OLDER = "older"
    UNKNOWN = "unknown"  # no version is given, or nothing of this kind is known of the package


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A release at which knowledge ends, with the day of its publication (empty: not known)."""

    kind: Kind
    release: str
    date: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Horizon:
    """A release that lies beyond what is known of its package: newer than ``bounds``, or older than them."""

    fact: VersionFact
    bounds: tuple[Bound, ...]
    older: bool = False


def standing(fact: VersionFact, kind: Kind) -> Standing:
    """The standing of a version: of an exact one, or of the lowest that it may be."""
    last, at = last_known(fact.package, kind), fact.exact or fact.low
    if last is None or at is None:
        return Standing.UNKNOWN
    if version_key(bare(at)) > version_key(last.release):
        return Standing.NEWER
    if kind is Kind.DEFECTS:
        return Standing.READ
    around = _table(fact.package).around(bare(at))
    if not around:
        return Standing.OLDER if fact.exact is not None else Standing.UNKNOWN
    return Standing.READ if len(around) == 1 else Standing.BETWEEN


def last_known(package: str, kind: Kind) -> Bound | None:
    """The newest release that was read, or that defects were collected up to; None where nothing is known."""
    return _newest_read(package) if kind is Kind.OPTIONS else _collected(package)


def horizons(
    versions: Mapping[str, VersionFact], packages: Iterable[str] | None = None, kinds: Iterable[Kind] = Kind
) -> tuple[Horizon, ...]:
    """The versions that lie beyond what is known, one entry a package, sorted; of ``packages`` alone if given."""
    names = versions.keys() if packages is None else set(packages) & versions.keys()
    found = (horizon(versions[name], tuple(kinds)) for name in sorted(names))
    return tuple(each for each in found if each is not None)


def packages_of(runs: Iterable[RunConfig]) -> frozenset[str] | None:
    """The packages whose releases decide the defaults of these runs; None where no framework is recognised."""
    named = {run.framework.value for run in runs if run.framework is not None}
    return frozenset(package for name in named for package in _deciding(name)) or None


def _deciding(framework: str) -> Iterator[str]:
    profile = profiles().get(framework)
    if profile is None:
        return
    yield profile.package
    if profile.options_of:
        yield from _deciding(profile.options_of)
    if framework in INHERITS:
        yield "transformers"


def horizon(fact: VersionFact, kinds: Iterable[Kind] = Kind) -> Horizon | None:
    """None for a version that lies within what is known, or of which nothing can be said."""
    newer = [kind for kind in kinds if standing(fact, kind) is Standing.NEWER]
    bounds = tuple(bound for kind in newer if (bound := last_known(fact.package, kind)) is not None)
    if bounds:
        return Horizon(fact=fact, bounds=bounds)
    if Kind.OPTIONS in kinds and standing(fact, Kind.OPTIONS) is Standing.OLDER:
        return Horizon(fact=fact, bounds=(_bound(fact.package, 0),), older=True)
    return None


@cache
def _catalogued() -> Mapping[str, str]:
    """The catalogue of each package that has one."""
    return {
        profile.package: name
        for name, profile in profiles().items()
        if profile.kind != "options" and name in load_texts(OPTIONS)
    }


def _newest_read(package: str) -> Bound | None:
    return _bound(package, -1) if package in _catalogued() else None


def _bound(package: str, place: int) -> Bound:
    release = _table(package).versions[place]
    dates = side("dates").get(_catalogued()[package], {})
    return Bound(kind=Kind.OPTIONS, release=release, date=dates.get(release, ""))


def _table(package: str) -> Table:
    known = table(_catalogued()[package])
    assert known is not None, "a catalogued framework has a table"
    return known


def _collected(package: str) -> Bound | None:
    known = load_table("defects/packages.toml").get(package, {}).get("collected")
    if known is None:
        return None
    return Bound(kind=Kind.DEFECTS, release=known["release"], date=known["date"].isoformat())
