"""A torch that was built for NumPy 1 with NumPy 2."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.package_pairs import pair


def check(facts: Facts) -> Outcome:
    """Fires where both versions are given and do not fit."""
    return pair(facts, ("torch", "<2.3.0"), ("numpy", ">=2.0.0"))
