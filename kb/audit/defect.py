"""Known defects of released packages (kb/defects/README.md): which releases have one, and what it does."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType

from packaging.version import Version

from trainmedic.kb.model.page import PageProblem
from trainmedic.kb.model.report import Text
from trainmedic.kb.versions import Clause, parse_range, parse_version


class Effect(StrEnum):
    """The worst that a defect does, the most harmful first."""

    SILENT = "silent"
    HANG = "hang"
    CRASH = "crash"
    SAVE = "save"
    RESUME = "resume"
    MEMORY = "memory"
    SLOW = "slow"
    LOG = "log"

    @property
    def rank(self) -> int:
        """0 for the most harmful."""
        return _RANKS[self]


_RANKS = {effect: rank for rank, effect in enumerate(Effect)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A place in the code of a release: a file, as imported, and a function, class or constant in it."""

    path: str
    symbol: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """One known defect.

    ``introduced`` is None if it is not known which release brought it, ``fixed`` None if no release is without it.
    ``when`` is a condition over a run (empty: the version alone decides), checked when the page is linted.
    ``spot`` is what the release with the fix does otherwise, where neither the pull request nor the commit is known.
    ``touches`` are names as in code and configuration. ``symptoms`` by language. ``framework`` is the one whose runs
    alone use the package (empty: a library). ``links``: what the page cites that tells it (empty: it is in a list).
    """

    id: str
    package: str
    title: Text
    effect: Effect
    touches: tuple[str, ...]
    symptoms: Mapping[str, tuple[str, ...]]
    introduced: str | None = None
    fixed: str | None = None
    when: str = ""
    pull: int | None = None
    commit: str = ""
    spot: Spot | None = None
    message: str = ""
    mechanism: str = ""
    workaround: Text | None = None
    link: str = ""
    framework: str = ""
    links: tuple[str, ...] = ()

    @property
    def affected(self) -> str:
        """The affected releases (``>=0.20.0,<0.21.0``; empty: all); all before the fix if the first is unknown."""
        bounds = (f">={self.introduced}" if self.introduced else "", f"<{self.fixed}" if self.fixed else "")
        return ",".join(filter(None, bounds))

    @property
    def source(self) -> str:
        """The place of the fix in the package, for who reads it there (empty: `link` leads to the fix itself)."""
        return f"{self.package} {self.fixed}, {self.spot.path}: {self.spot.symbol}" if self.spot else ""

    @property
    def versions(self) -> tuple[Clause, ...]:
        """`affected` as a range."""
        return parse_range(self.affected) if self.affected else ()

    def has(self, release: Version) -> bool:
        """Whether an exact release is affected."""
        first, last = parse_version(self.introduced), parse_version(self.fixed)
        return (first is None or release >= first) and (last is None or release < last)


@dataclass(frozen=True, slots=True, kw_only=True)
class DefectSet:
    """Defects by package, each package's in the order of their ids; ``failures`` of entries that did not load.

    ``places``: the file of each defect by its id. ``version`` changes with every list.
    """

    by_package: Mapping[str, tuple[Defect, ...]] = field(default_factory=lambda: MappingProxyType({}))
    places: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    failures: tuple[PageProblem, ...] = ()
    version: str = ""

    @property
    def all(self) -> tuple[Defect, ...]:
        return tuple(defect for defects in self.by_package.values() for defect in defects)

    def of(self, packages: Collection[str]) -> DefectSet:
        """Those of some packages alone."""
        return replace(self, by_package={name: self.by_package[name] for name in self.by_package if name in packages})
