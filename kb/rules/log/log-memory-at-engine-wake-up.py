"""Out of memory while a sleeping rollout engine maps its memory again."""

from __future__ import annotations

from dataclasses import replace

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.memory_place import in_force, ran_out_at


def check(facts: Facts) -> Outcome:
    """Fires on an out-of-memory traceback whose innermost known frame is there."""
    outcome = ran_out_at(facts, "wake")
    return replace(outcome, values={**outcome.values, **in_force(facts, "rollout_memory", "share")})
