"""Out of memory in the entropy or log-probability functions that verl runs over whole logits."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.memory_place import ran_out_at


def check(facts: Facts) -> Outcome:
    """Fires on an out-of-memory traceback whose innermost known frame is there."""
    return ran_out_at(facts, "entropy")
