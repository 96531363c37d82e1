"""Out of memory while a sleeping rollout engine maps its memory again."""

from __future__ import annotations

from dataclasses import replace

from kb.rules.facts import Facts
from kb.rules.logic.memory_place import in_force, ran_out_at
from kb.rules.outcome import Outcome


def check(facts: Facts) -> Outcome:
    """Fires on an out-of-memory traceback whose innermost known frame is there."""
    outcome = ran_out_at(facts, "wake")
    return replace(outcome, values={**outcome.values, **in_force(facts, "rollout_memory", "share")})
