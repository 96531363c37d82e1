"""DeepSpeed's refusal to halve the loss scale once more; its exception is a bare one, often pasted as a single line."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.log_text import first, told


def check(facts: Facts) -> Outcome:
    """Fires where the message stands in a log or in what the user quotes."""
    return told(first(facts, "Current loss scale already at minimum"))
