"""A Trainer that passes keep_torch_compile to an accelerate that does not know it."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.package_pairs import pair


def check(facts: Facts) -> Outcome:
    """Fires where both versions are given and do not fit."""
    return pair(facts, ("accelerate", "<1.3.0"), ("transformers", ">=4.52.1"))
