"""The version of a package, exact or bounded, as a text and against a range."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from trainmedic.kb.model.run import VersionFact
from trainmedic.kb.versions import Clause, Interval, holds, interval_holds, parse_range, parse_version


def version_text(fact: VersionFact) -> str:
    """A version as a message shows it: ``2.6.1``, ``0.3.4–0.5.2``, ``≥ 0.3.4``, ``?`` if nothing is known."""
    if fact.exact is not None:
        return fact.exact
    if fact.low is None and fact.high is None:
        return "?"
    if fact.low is not None and fact.high is not None:
        return f"{fact.low}–{fact.high}"
    return f"≥ {fact.low}" if fact.low is not None else f"≤ {fact.high}"


def in_range(fact: VersionFact, clauses: Sequence[Clause]) -> bool | None:
    """Whether a version lies in a range; None where it is only partly bounded, or a pre-release next to a bound."""
    exact = parse_version(fact.exact)
    if exact is not None:
        return holds(exact, clauses)
    return interval_holds(Interval(parse_version(fact.low), parse_version(fact.high)), clauses)


def within(fact: VersionFact, spec: str) -> bool | None:
    """`in_range` of a range's text."""
    return _within(fact.exact, fact.low, fact.high, spec)


@lru_cache(maxsize=16_384)  # every question asks the ranges of all pages about the same few versions
def _within(exact: str | None, low: str | None, high: str | None, spec: str) -> bool | None:
    return in_range(VersionFact(package="", exact=exact, reason="", low=low, high=high), parse_range(spec))
