"""vLLM found no memory for its cache at start."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.log_text import first, told


def check(facts: Facts) -> Outcome:
    """Fires on the message."""
    return told(first(facts, "No available memory for the cache blocks"))
