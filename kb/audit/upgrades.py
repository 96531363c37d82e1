"""The smallest change of versions that leaves no known defect of an audit behind, or says why one stays.

Only releases that the knowledge names are chosen: those that brought or fixed a defect, and those that a framework's
release requires.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from packaging.version import Version
from resolvelib import AbstractProvider, BaseReporter, Resolver
from resolvelib.resolvers import ResolutionError, ResolutionImpossible

from trainmedic.kb.audit.audit import DefectMatch, Doubt
from trainmedic.kb.audit.defect import Defect
from trainmedic.kb.frameworks.catalogue import pins
from trainmedic.kb.frameworks.tables import side
from trainmedic.kb.model.environment import VersionChange
from trainmedic.kb.model.run import VersionFact
from trainmedic.kb.versions import parse_range, parse_version, permits

MOST_CHOICES = 20
"""Releases of a package that are tried, besides the present one."""
MOST_ROUNDS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Remainder:
    """A defect that stays. ``reason``: ``unreleased``, ``version`` (not known which is installed), ``constraint``
    (``detail``: the requirement in the way), or ``trade`` (``detail``: the worse defect that the fix would bring)."""

    defect: str
    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradePlan:
    changes: tuple[VersionChange, ...] = ()
    left: tuple[Remainder, ...] = ()


@dataclass(frozen=True, slots=True)
class _Choice:
    package: str
    release: Version


@dataclass(frozen=True, slots=True)
class _Need:
    package: str
    range: str = ""
    source: str = ""


@lru_cache(maxsize=65_536)
def _allows(requirement: str, release: Version) -> bool:
    """`permits`, remembered: a resolution asks the same thousands of times."""
    return not requirement or permits(requirement, str(release))


def releases_of(defects: Iterable[Defect]) -> dict[str, tuple[Version, ...]]:
    """The final releases of each package that the knowledge names, ascending."""
    named: dict[str, set[Version]] = {}
    for defect in defects:
        named.setdefault(defect.package, set()).update(_versions(defect.introduced, defect.fixed))
    for framework, by_release in side("pins").items():
        named.setdefault(framework, set()).update(_versions(*by_release))
        for requirements in by_release.values():
            for package, requirement in requirements.items():
                named.setdefault(package, set()).update(_named_in(requirement))
    return {
        package: tuple(sorted(release for release in found if not release.is_prerelease))
        for package, found in sorted(named.items())
    }


def _versions(*texts: str | None) -> Iterator[Version]:
    yield from (version for text in texts if (version := parse_version(text)) is not None)


def _named_in(requirement: str) -> Iterator[Version]:
    """The releases that a requirement names as permitted; an upper bound such as ``<5`` need not exist."""
    clauses = parse_range(requirement)
    yield from (clause.bound for clause in clauses if clause.operator in ("==", ">=", "<=") and not clause.wide)


def plan(
    matches: Sequence[DefectMatch],
    defects: Iterable[Defect],
    versions: Mapping[str, VersionFact],
    *,
    with_possible: bool = False,
) -> UpgradePlan:
    """The changes that clear the certain defects of an audit, those in part of a range of versions included.

    ``defects`` are all of the installed packages; ``with_possible`` also clears those whose condition is not known.
    """
    targets = [match for match in matches if match.certain or with_possible or set(match.doubts) <= {Doubt.VERSION}]
    everything = list(defects)
    market = _Market(targets, everything, matches, versions)
    chosen = market.resolved()
    changes = []
    for package, release in chosen.items():
        if release == market.current[package]:
            continue
        fact = versions[package]
        cleared = tuple(m.defect.id for m in targets if m.defect.package == package and not m.defect.has(release))
        changes.append(
            VersionChange(
                package=package,
                current=fact.exact or fact.low or "",
                to=str(release),
                clears=cleared,
                enters=tuple(defect.id for defect in market.entered(package, release)),
                because="" if cleared else market.asking(package, chosen),
            )
        )
    left = tuple(r for match in targets if (r := market.remainder(match.defect, chosen)) is not None)
    return UpgradePlan(changes=tuple(changes), left=left)


class _Market:
    """What each package can become, best first."""

    def __init__(
        self,
        targets: Sequence[DefectMatch],
        defects: Sequence[Defect],
        matches: Sequence[DefectMatch],
        versions: Mapping[str, VersionFact],
    ) -> None:
        self.releases = releases_of(defects)
        self.current = {
            package: version
            for package, fact in sorted(versions.items())
            if (version := parse_version(fact.exact or fact.low)) is not None
        }
        self.targets: dict[str, list[Defect]] = {}
        for match in targets:
            self.targets.setdefault(match.defect.package, []).append(match.defect)
        # A condition that does not hold, or is not known, makes a defect no reason against a release.
        possible = {match.defect.id for match in matches}
        self.unconditional: dict[str, list[Defect]] = {}
        for defect in defects:
            if not defect.when and defect.id not in possible:
                self.unconditional.setdefault(defect.package, []).append(defect)

    def entered(self, package: str, release: Version) -> list[Defect]:
        """Defects that a release brings, as harmful as the worst one to be cleared."""
        worst = max((defect.effect.rank for defect in self.targets.get(package, ())), default=-1)
        return [
            defect
            for defect in self.unconditional.get(package, ())
            if defect.effect.rank <= worst and defect.introduced is not None and defect.has(release)
        ]

    def cost(self, package: str, release: Version) -> int:
        """How many defects that count are there after a change."""
        left = sum(defect.has(release) for defect in self.targets.get(package, ()))
        return left + (len(self.entered(package, release)) if release != self.current[package] else 0)

    @cached_property
    def choices(self) -> Mapping[str, tuple[tuple[int, Version], ...]]:
        """The present version and the later releases of each package with their costs, the cheapest and lowest first.

        Without defects of its own a package changes only if another one asks for it.
        """
        found = {}
        for package, current in self.current.items():
            later = (release for release in self.releases.get(package, ()) if release > current)
            costs = sorted((self.cost(package, release), release) for release in later)[:MOST_CHOICES]
            found[package] = tuple(sorted([(self.cost(package, current), current), *costs]))
        return found

    def needs(self, choice: _Choice) -> Iterator[_Need]:
        """Requirements of a framework's release on the other packages. What is violated already is not a constraint."""
        for package, requirement in sorted(pins(choice.package, str(choice.release)).items()):
            current = self.current.get(package)
            if current is None:
                continue
            if choice.release == self.current[choice.package] and not _allows(requirement, current):
                continue
            yield _Need(package, requirement, f"{choice.package} {choice.release}")

    def resolved(self) -> dict[str, Version]:
        """Package → version, each at the least cost that the requirements between them leave.

        The present versions if no combination is found in time.
        """
        bound = {package: choices[0][0] for package, choices in self.choices.items()}
        while True:
            resolver: Resolver[_Need, _Choice, str] = Resolver(_Provider(self, bound), BaseReporter())
            try:
                result = resolver.resolve([_Need(package) for package in self.current], max_rounds=MOST_ROUNDS)
            except ResolutionImpossible as error:
                self._relax(bound, {cause.requirement.package for cause in error.causes})
            except ResolutionError:
                return dict(self.current)
            else:
                return {package: result.mapping[package].release for package in sorted(result.mapping)}

    def _relax(self, bound: dict[str, int], conflicting: Collection[str]) -> None:
        """Let one package keep more of its defects: of those in conflict the one with the least harmful.

        There is one, because the present versions together do not conflict.
        """
        steps = {
            package: min(cost for cost, _ in choices if cost > bound[package])
            for package, choices in self.choices.items()
            if choices[-1][0] > bound[package]
        }

        def harm(package: str) -> tuple[bool, int, str]:
            worst = min(defect.effect.rank for defect in self.targets[package])
            return package not in conflicting, -worst, package

        package = min(steps, key=harm)
        bound[package] = steps[package]

    def asking(self, package: str, chosen: Mapping[str, Version]) -> str:
        """The requirement that a package's present version does not meet, or that it has and the others do not."""
        current = self.current[package]
        return self._unmet(package, current, chosen) or self._obstacle(package, current, chosen)

    def _unmet(self, package: str, release: Version, chosen: Mapping[str, Version]) -> str:
        """A requirement of a release that the other chosen versions do not meet."""
        for need in self.needs(_Choice(package, release)):
            if not _allows(need.range, chosen[need.package]):
                return f"{need.source} requires {need.package}{need.range}"
        return ""

    def _obstacle(self, package: str, release: Version, chosen: Mapping[str, Version]) -> str:
        for other, version in chosen.items():
            for need in self.needs(_Choice(other, version)):
                if need.package == package and not _allows(need.range, release):
                    return f"{need.source} requires {package}{need.range}"
        return ""

    def remainder(self, defect: Defect, chosen: Mapping[str, Version]) -> Remainder | None:
        """Why a defect stays; None if it does not."""
        release = chosen.get(defect.package)
        if release is None:
            return Remainder(defect=defect.id, reason="version")
        if not defect.has(release):
            return None
        fixed = parse_version(defect.fixed)
        if fixed is None or not any(later >= fixed for later in self.releases[defect.package]):
            return Remainder(defect=defect.id, reason="unreleased")
        if entered := self.entered(defect.package, fixed):
            return Remainder(defect=defect.id, reason="trade", detail=entered[0].id)
        detail = self._obstacle(defect.package, fixed, chosen) or self._unmet(defect.package, fixed, chosen)
        return Remainder(defect=defect.id, reason="constraint", detail=detail)


class _Provider(AbstractProvider[_Need, _Choice, str]):
    """The releases of a market to the resolver."""

    def __init__(self, market: _Market, bound: Mapping[str, int]) -> None:
        self.market = market
        self.bound = bound

    def identify(self, requirement_or_candidate: _Need | _Choice) -> str:
        return requirement_or_candidate.package

    def get_preference(self, identifier: str, *_: Any, **__: Any) -> tuple[bool, str]:
        return identifier not in self.market.targets, identifier

    def find_matches(
        self,
        identifier: str,
        requirements: Mapping[str, Iterator[_Need]],
        incompatibilities: Mapping[str, Iterator[_Choice]],
    ) -> list[_Choice]:
        needs = list(requirements[identifier])
        excluded = {choice.release for choice in incompatibilities[identifier]}
        return [
            _Choice(identifier, release)
            for cost, release in self.market.choices[identifier]
            if cost <= self.bound[identifier]
            and release not in excluded
            and all(_allows(need.range, release) for need in needs)
        ]

    def is_satisfied_by(self, requirement: _Need, candidate: _Choice) -> bool:
        return _allows(requirement.range, candidate.release)

    def get_dependencies(self, candidate: _Choice) -> list[_Need]:
        return list(self.market.needs(candidate))
