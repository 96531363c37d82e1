"""The notice about num_items_in_batch that Unsloth prints."""

from __future__ import annotations

from kb.rules.facts import Facts
from kb.rules.logic.log_text import first, told
from kb.rules.outcome import Outcome


def check(facts: Facts) -> Outcome:
    """Fires on its own words; the class in front of them varies."""
    return told(first(facts, "does not accept `num_items_in_batch`"))
