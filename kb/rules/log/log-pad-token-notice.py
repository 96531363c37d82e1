"""The line with which generation says that it pads with the end token."""

from __future__ import annotations

from kb.rules.facts import Facts
from kb.rules.logic.log_text import first, told
from kb.rules.outcome import Outcome


def check(facts: Facts) -> Outcome:
    """Fires on the line of ``generate``; that about a tokenizer's pad token is another one."""
    return told(first(facts, "Setting `pad_token_id` to `eos_token_id`"))
