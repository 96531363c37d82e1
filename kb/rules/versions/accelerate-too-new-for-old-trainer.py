"""A Trainer that passes dispatch_batches to an accelerate that dropped it."""

from __future__ import annotations

from kb.rules.facts import Facts
from kb.rules.logic.package_pairs import pair
from kb.rules.outcome import Outcome


def check(facts: Facts) -> Outcome:
    """Fires where both versions are given and do not fit."""
    return pair(facts, ("accelerate", ">=1.0.0"), ("transformers", ">=4.32.0,<=4.39.3"))
