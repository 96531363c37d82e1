"""The line that tells that the cache of keys and values is off while checkpointing, in its two wordings."""

from __future__ import annotations

from kb.rules.facts import Facts
from kb.rules.logic.log_text import first, told
from kb.rules.outcome import Outcome


def check(facts: Facts) -> Outcome:
    """Fires on the older wording of transformers, and on that which most models have from 4.54.0 on."""
    old = first(facts, "`use_cache=True` is incompatible with gradient checkpointing")
    return told(old or first(facts, "Caching is incompatible with gradient checkpointing"))
