"""The notice about num_items_in_batch that Unsloth prints."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.log_text import first, told


def check(facts: Facts) -> Outcome:
    """Fires on its own words; the class in front of them varies."""
    return told(first(facts, "does not accept `num_items_in_batch`"))
