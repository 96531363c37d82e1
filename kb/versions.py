"""Release numbers: their order, and whether one lies in a range. Three-valued: None is "cannot be told".

Order is that of PEP 440, plain and total (``0.5.2 < 0.5.2.post1 < 0.5.3rc1 < 0.5.3``). PEP 440's specifiers make
exceptions that would be wrong for an affected range: a fix in ``1.2.post1`` is later than ``1.2``, so it is ``>1.2``.
A local part (``+cu124``) names a build of the same release and is ignored unless the range names one as well. A
pre-release (``4.46.0.dev0``, a checkout of the main branch) lies somewhere between two releases: if a range answers
differently just below the coming release and at it, the answer is None.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from packaging.version import InvalidVersion, Version

_LOWEST = Version("0.dev0")
_OPERATORS = ("===", ">=", "<=", "==", "!=", "~=", ">", "<")


@dataclass(frozen=True, slots=True)
class Clause:
    """One comparison of a range. ``wide`` is True for ``==4.46.*``; ``bound`` is then ``4.46``."""

    operator: str
    bound: Version
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Interval:
    """The bounds of a version: between ``low`` and ``high`` (None: unbounded), ends inclusive unless open."""

    low: Version | None = None
    high: Version | None = None
    low_open: bool = False
    high_open: bool = False


@lru_cache(maxsize=4096)
def parse_version(text: str | None) -> Version | None:
    """None if ``text`` is not a version (``main``, ``unknown``)."""
    try:
        return Version(text) if text else None
    except InvalidVersion:
        return None


@lru_cache(maxsize=4096)
def version_key(text: str) -> Version:
    """A key that orders releases; local parts are ignored, and text that is not a version sorts first."""
    return parse_version(text.partition("+")[0]) or _LOWEST


def bare(version: str) -> str:
    """A tag without its ``v`` and without a local part: ``v0.8.11`` → ``0.8.11``, ``2.5.1+cu121`` → ``2.5.1``."""
    text = version.strip().partition("+")[0]
    return text[1:] if text[:1] in ("v", "V") and text[1:2].isdigit() else text


@lru_cache(maxsize=1024)
def parse_range(text: str) -> tuple[Clause, ...]:
    """The clauses of ``">=2.6.0,<2.6.2"``. Raises ValueError if the text is not a range."""
    return tuple(_clause(part.strip()) for part in text.split(","))


def _clause(text: str) -> Clause:
    # packaging.specifiers would do, but loading it costs `check` more than 10 ms.
    operator = next((operator for operator in _OPERATORS if text.startswith(operator)), "")
    number = text[len(operator) :].strip()
    bound = parse_version(number.removesuffix(".*"))
    wide = number.endswith(".*")
    if not operator or bound is None:
        raise ValueError(f"{text!r} is not a version range; write for example '>=2.6.0,<2.6.2'")
    if wide and operator not in ("==", "!="):
        raise ValueError(f"{text!r}: '.*' only goes with == and !=")
    if operator == "~=" and len(bound.release) < 2:
        raise ValueError(f"{text!r}: ~= needs at least two numbers")
    return Clause("==" if operator == "===" else operator, bound, wide)


def holds(version: Version, clauses: Iterable[Clause]) -> bool | None:
    """Whether an exactly known version lies in the range; None for a pre-release that the range would separate."""
    clauses = tuple(clauses)
    answer = interval_holds(Interval(version, version), clauses)
    if version.is_prerelease and not any(version.public == clause.bound.public for clause in clauses):
        release = parse_version(version.base_version)
        if answer != interval_holds(Interval(release, release), clauses):
            return None
    return answer


def interval_holds(interval: Interval, clauses: Iterable[Clause]) -> bool | None:
    """Whether every version of the interval lies in the range (True), none does (False), or some do (None)."""
    return _all(_clause_holds(interval, clause) for clause in clauses)


def permits(requirement: str, version: str) -> bool:
    """Whether a package's requirement (``>=4.41.2,!=4.46.*``) may allow a release. An unreadable clause allows all."""
    release = version_key(version)
    for part in filter(str.strip, requirement.split(",")):
        try:
            clauses = parse_range(part)
        except ValueError:
            continue
        if holds(release, clauses) is False:
            return False
    return True


def interval_of(requirement: str) -> Interval | None:
    """The interval that a requirement (``==2.6.1``, ``>=4.41,<4.47``) leaves; None if it bounds nothing."""
    try:
        clauses = parse_range(requirement)
    except ValueError:
        return None
    low: Version | None = None
    high: Version | None = None
    low_open = high_open = False
    for clause in clauses:
        for operator, bound in _bounds(clause):
            if operator in (">", ">=") and (low is None or bound >= low):
                low, low_open = bound, operator == ">"
            if operator in ("<", "<=") and (high is None or bound <= high):
                high, high_open = bound, operator == "<"
    return Interval(low, high, low_open, high_open) if low is not None or high is not None else None


def _bounds(clause: Clause) -> tuple[tuple[str, Version], ...]:
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
    """The first version after all that start with these numbers, pre-releases included."""
    return Version(".".join(map(str, (*release[:-1], release[-1] + 1))) + ".dev0")


def _clause_holds(interval: Interval, clause: Clause) -> bool | None:
    if clause.operator == "!=":
        inner = _clause_holds(interval, Clause("==", clause.bound, clause.wide))
        return None if inner is None else not inner
    if clause.bound.local is None:
        interval = Interval(_public(interval.low), _public(interval.high), interval.low_open, interval.high_open)
    return _all(_bound_holds(interval, operator, bound) for operator, bound in _bounds(clause))


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


def _public(version: Version | None) -> Version | None:
    return version if version is None or version.local is None else parse_version(version.public)


def _all(answers: Iterable[bool | None]) -> bool | None:
    unknown = False
    for answer in answers:
        if answer is False:
            return False
        unknown = unknown or answer is None
    return None if unknown else True
