"""vLLM found no memory for its cache at start."""

from __future__ import annotations

from kb.rules.facts import Facts
from kb.rules.logic.log_text import first, told
from kb.rules.outcome import Outcome


def check(facts: Facts) -> Outcome:
    """Fires on the message."""
    return told(first(facts, "No available memory for the cache blocks"))
