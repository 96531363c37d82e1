"""DeepSpeed's refusal to halve the loss scale once more; its exception is a bare one, often pasted as a single line."""

from __future__ import annotations

from kb.rules.facts import Facts
from kb.rules.logic.log_text import first, told
from kb.rules.outcome import Outcome


def check(facts: Facts) -> Outcome:
    """Fires where the message stands in a log or in what the user quotes."""
    return told(first(facts, "Current loss scale already at minimum"))
