"""Whether a version, known exactly or only between bounds, lies in a range. Three-valued: None is "cannot be told".

Order is that of PEP 440 as `packaging.version.Version` gives it (``0.5.2 < 0.5.2.post1 < 0.5.3rc1 < 0.5.3``), plain
and total, unlike PEP 440's specifiers, which make exceptions for pre- and post-releases. A local part (``+cu124``) is
ignored unless the range names one. A pre-release (``4.46.0.dev0``, a checkout of the main branch) stands somewhere
between two releases: where the range would give one answer just below the coming release and another at it, the
answer is None.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from packaging.version import InvalidVersion, Version

_CLAUSE = re.compile(r"(>=|<=|==|!=|~=|>|<)\s*v?([0-9][^\s,]*)")


@dataclass(frozen=True, slots=True)
class Clause:
    """One comparison of a range. ``wide`` is True for ``==4.46.*``; ``bound`` is then ``4.46``."""

    operator: str
    bound: Version
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Interval:
    """What is known of a version: between ``low`` and ``high`` (None: unbounded), ends inclusive unless open."""

    low: Version | None = None
    high: Version | None = None
    low_open: bool = False
    high_open: bool = False


@lru_cache(maxsize=1024)
def parse_range(text: str) -> tuple[Clause, ...]:
    """The clauses of ``">=2.6.0,<2.6.2"``. Raises ValueError where the text is no such range."""
    clauses = []
    for part in text.split(","):
        match = _CLAUSE.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{part.strip()!r} is no version range; write for example '>=2.6.0,<2.6.2'")
        operator, bound = match[1], match[2]
        wide = bound.endswith(".*")
        if wide and operator not in ("==", "!="):
            raise ValueError(f"{part.strip()!r}: '.*' only goes with == and !=")
        try:
            version = Version(bound.removesuffix(".*"))
        except InvalidVersion:
            raise ValueError(f"{bound!r} is no version") from None
        if operator == "~=" and len(version.release) < 2:
            raise ValueError(f"{part.strip()!r}: ~= needs at least two numbers")
        clauses.append(Clause(operator, version, wide))
    return tuple(clauses)


@lru_cache(maxsize=1024)
def parse_version(text: str | None) -> Version | None:
    """The version in ``text``, or None where it is none (``main``, ``unknown``)."""
    try:
        return Version(text) if text else None
    except InvalidVersion:
        return None


def holds(version: Version, clauses: Iterable[Clause]) -> bool | None:
    """Whether an exactly known version lies in the range; None for a pre-release that the range would separate."""
    clauses = tuple(clauses)
    exact = all(_holds(version, clause) for clause in clauses)
    if version.is_prerelease and exact != all(_holds(Version(version.base_version), clause) for clause in clauses):
        named = any(version.public == clause.bound.public for clause in clauses)
        return exact if named else None
    return exact


def interval_holds(interval: Interval, clauses: Iterable[Clause]) -> bool | None:
    """Whether every version of the interval lies in the range (True), none does (False), or some do (None)."""
    answers = [_interval_holds(interval, clause) for clause in clauses]
    if False in answers:
        return False
    return None if None in answers else True


def interval_of(spec: str) -> Interval | None:
    """The interval that a requirement (``==2.6.1``, ``>=4.41,<4.47``) leaves; None where it says nothing readable."""
    try:
        clauses = parse_range(spec)
    except ValueError:
        return None
    low: Version | None = None
    high: Version | None = None
    low_open = high_open = False
    for clause in clauses:
        for operator, bound in _as_orders(clause):
            if operator in (">", ">=") and (low is None or bound >= low):
                low, low_open = bound, operator == ">"
            if operator in ("<", "<=") and (high is None or bound <= high):
                high, high_open = bound, operator == "<"
    return Interval(low, high, low_open, high_open) if low is not None or high is not None else None


def _as_orders(clause: Clause) -> tuple[tuple[str, Version], ...]:
    """A clause as lower and upper bounds; ``!=`` has none."""
    if clause.operator == "!=":
        return ()
    if clause.wide:
        return ((">=", clause.bound), ("<", _after(clause.bound.release)))
    if clause.operator == "~=":
        return ((">=", clause.bound), ("<", _after(clause.bound.release[:-1])))
    if clause.operator == "==":
        return ((">=", clause.bound), ("<=", clause.bound))
    return ((clause.operator, clause.bound),)


def _after(release: tuple[int, ...]) -> Version:
    """The first release after every version that starts with these numbers, pre-releases of it excluded."""
    return Version(".".join(map(str, (*release[:-1], release[-1] + 1))) + ".dev0")


def _holds(version: Version, clause: Clause) -> bool:
    left = version if clause.bound.local else _public(version)
    if clause.operator == "!=":
        return not _holds(version, Clause("==", clause.bound, clause.wide))
    return all(_compare(left, operator, bound) for operator, bound in _as_orders(clause))


def _public(version: Version) -> Version:
    return Version(version.public) if version.local else version


def _compare(left: Version, operator: str, right: Version) -> bool:
    if operator == ">=":
        return left >= right
    if operator == "<=":
        return left <= right
    return left > right if operator == ">" else left < right


def _interval_holds(interval: Interval, clause: Clause) -> bool | None:
    if clause.operator == "!=":
        inner = _interval_holds(interval, Clause("==", clause.bound, clause.wide))
        return None if inner is None else not inner
    answers = [_bound_holds(interval, operator, bound) for operator, bound in _as_orders(clause)]
    if False in answers:
        return False
    return None if None in answers else True


def _bound_holds(interval: Interval, operator: str, bound: Version) -> bool | None:
    """One order against an interval. Turned so that only ``>`` and ``>=`` are left to think about."""
    if operator in ("<", "<="):
        opposite = _bound_holds(interval, ">=" if operator == "<" else ">", bound)
        return None if opposite is None else not opposite
    low, high = interval.low, interval.high
    if low is not None and (low > bound or (low == bound and (operator == ">=" or interval.low_open))):
        return True
    if high is not None and (high < bound or (high == bound and (operator == ">" or interval.high_open))):
        return False
    return None
