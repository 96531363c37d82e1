"""A torch that was built for NumPy 1 with NumPy 2."""

from __future__ import annotations

from kb.rules.facts import Facts
from kb.rules.logic.package_pairs import pair
from kb.rules.outcome import Outcome


def check(facts: Facts) -> Outcome:
    """Fires where both versions are given and do not fit."""
    return pair(facts, ("torch", "<2.3.0"), ("numpy", ">=2.0.0"))
