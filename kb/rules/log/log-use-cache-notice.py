"""The line that tells that the cache of keys and values is off while checkpointing, in its two wordings."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.log_text import first, told


def check(facts: Facts) -> Outcome:
    """Fires on the older wording of transformers, and on that which most models have from 4.54.0 on."""
    old = first(facts, "`use_cache=True` is incompatible with gradient checkpointing")
    return told(old or first(facts, "Caching is incompatible with gradient checkpointing"))
