"""A Trainer that passes dispatch_batches to an accelerate that dropped it."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.package_pairs import pair


def check(facts: Facts) -> Outcome:
    """Fires where both versions are given and do not fit."""
    return pair(facts, ("accelerate", ">=1.0.0"), ("transformers", ">=4.32.0,<=4.39.3"))
