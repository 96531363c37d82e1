"""Out of memory in the entropy or log-probability functions that verl runs over whole logits."""

from __future__ import annotations

from kb.rules.facts import Facts
from kb.rules.logic.memory_place import ran_out_at
from kb.rules.outcome import Outcome


def check(facts: Facts) -> Outcome:
    """Fires on an out-of-memory traceback whose innermost known frame is there."""
    return ran_out_at(facts, "entropy")
