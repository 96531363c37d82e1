"""A Trainer that passes keep_torch_compile to an accelerate that does not know it."""

from __future__ import annotations

from kb.rules.facts import Facts
from kb.rules.logic.package_pairs import pair
from kb.rules.outcome import Outcome


def check(facts: Facts) -> Outcome:
    """Fires where both versions are given and do not fit."""
    return pair(facts, ("accelerate", "<1.3.0"), ("transformers", ">=4.52.1"))
