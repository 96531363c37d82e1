"""PEFT that imports HybridCache with a transformers that dropped it."""

from __future__ import annotations

from kb.rules.facts import Facts
from kb.rules.logic.package_pairs import pair
from kb.rules.outcome import Outcome


def check(facts: Facts) -> Outcome:
    """Fires where both versions are given and do not fit."""
    return pair(facts, ("peft", ">=0.16.0,<0.18.0"), ("transformers", ">=5.0.0"))
