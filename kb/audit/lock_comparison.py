"""Differences between an environment that works and one that does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from trainmedic.kb.audit.audit import DefectMatch, closeness
from trainmedic.kb.engine.version_ranges import in_range
from trainmedic.kb.frameworks import catalogue
from trainmedic.kb.frameworks.defaults import was_read
from trainmedic.kb.frameworks.profiles import profiles
from trainmedic.kb.model.environment import OptionChange
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.run import Value, VersionFact
from trainmedic.kb.versions import parse_version

CLOSE = 0.5
"""Closeness to the pasted text from which a defect comes before more harmful ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageChange:
    """A package that differs; None on one side where it is not installed."""

    package: str
    good: VersionFact | None
    bad: VersionFact | None

    @property
    def kind(self) -> str:
        """``added``, ``removed``, ``upgraded``, ``downgraded``, or ``changed`` where a version is not exact."""
        if self.good is None or self.bad is None:
            return "added" if self.good is None else "removed"
        before, after = parse_version(self.good.exact), parse_version(self.bad.exact)
        if before is None or after is None:
            return "changed"
        return "upgraded" if after > before else "downgraded"


@dataclass(frozen=True, slots=True, kw_only=True)
class LockComparison:
    """``defects`` are those that only the bad environment has, the closest to the pasted text first."""

    packages: tuple[PackageChange, ...] = ()
    defects: tuple[DefectMatch, ...] = ()
    options: tuple[OptionChange, ...] = ()


def compare(
    good: Mapping[str, VersionFact],
    evidence: Evidence,
    matches: Sequence[DefectMatch],
    sentences: Sequence[str] = (),
) -> LockComparison:
    """``evidence`` is that of the bad environment with the configuration and log, ``matches`` its defects."""
    bad = evidence.versions
    packages = tuple(
        PackageChange(package=name, good=good.get(name), bad=bad.get(name))
        for name in sorted({*good, *bad})
        if not _same(good.get(name), bad.get(name))
    )
    new = [match for match in matches if _is_new(match, good.get(match.defect.package))]
    close = {match.defect.id: closeness(match.defect, evidence, sentences) for match in new}
    options = tuple(option for change in packages for option in _options(change, evidence))
    return LockComparison(
        packages=packages,
        # Stable: among equally close ones the order of the audit stays.
        defects=tuple(sorted(new, key=lambda match: -close[match.defect.id] if close[match.defect.id] >= CLOSE else 0)),
        options=tuple(sorted(options, key=lambda option: not option.concerns)),
    )


def _same(first: VersionFact | None, second: VersionFact | None) -> bool:
    if first is None or second is None:
        return False
    return (first.exact, first.low, first.high) == (second.exact, second.low, second.high)


def _is_new(match: DefectMatch, good: VersionFact | None) -> bool:
    return good is None or (bool(match.defect.versions) and in_range(good, match.defect.versions) is False)


def _options(change: PackageChange, evidence: Evidence) -> Iterator[OptionChange]:
    """The options that differ between the two versions, if something was read of both."""
    framework = next((name for name, profile in profiles().items() if profile.package == change.package), None)
    if framework is None or change.good is None or change.bad is None:
        return
    before, after = change.good.exact, change.bad.exact
    if before is None or after is None or not was_read(framework, (before, after)):
        return
    written = {option.key.replace("-", "_") for run in evidence.runs for option in run.options}
    gone = {key for key in catalogue.keys(framework) if catalogue.exists(framework, key, after) is False}
    for key in catalogue.keys(framework, before):
        is_written = key.replace("-", "_") in written
        if key in gone:
            steps = [step for step in catalogue.renamed(framework, key) if step.old == key]
            names = [step.new for step in steps if catalogue.exists(framework, step.new, after)]
            kind = "renamed" if names else "removed"
            new = names[-1] if names else None
            yield OptionChange(framework=framework, option=key, kind=kind, after=new, concerns=is_written)
            continue
        old, now = _default(framework, key, before), _default(framework, key, after)
        if not old or not now or old == now:
            continue
        concerns = bool(written) and not is_written
        yield OptionChange(
            framework=framework, option=key, kind="default", before=old[0], after=now[0], concerns=concerns
        )


def _default(framework: str, key: str, version: str) -> tuple[Value, ...]:
    """The default at a version, if all releases that speak for it have the same; else nothing."""
    found = [catalogue.option(framework, key, release) for release in catalogue.around(framework, version)]
    known = [each.default for each in found if each is not None and each.default_known]
    return tuple(known[:1]) if known == known[:1] * len(found) else ()
