"""The line with which generation says that it pads with the end token."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.log_text import first, told


def check(facts: Facts) -> Outcome:
    """Fires on the line of ``generate``; that about a tokenizer's pad token is another one."""
    return told(first(facts, "Setting `pad_token_id` to `eos_token_id`"))
