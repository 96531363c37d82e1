"""PEFT that imports HybridCache with a transformers that dropped it."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.package_pairs import pair


def check(facts: Facts) -> Outcome:
    """Fires where both versions are given and do not fit."""
    return pair(facts, ("peft", ">=0.16.0,<0.18.0"), ("transformers", ">=5.0.0"))
