"""FlashAttention-2 on a card older than Ampere, or its refusal in the log."""

from __future__ import annotations

from kb.rules.expr import compile_expression
from kb.rules.facts import Facts
from kb.rules.logic.graphics_cards import on_cards_below
from kb.rules.logic.log_text import first, told
from kb.rules.outcome import Outcome
from kb.rules.page import vocabulary

AMPERE = 8.0
_CONDITION = compile_expression('written("attention") and attention == "flash2"', vocabulary())
_REFUSALS = ("FlashAttention only supports Ampere GPUs or newer", "FlashAttention only support Ampere GPUs or newer")


def check(facts: Facts) -> Outcome:
    """Fires on the kernel's own message, or where flash attention is written and every card named is too old."""
    for text in _REFUSALS:
        span = first(facts, text)
        if span is not None:
            return told(span, card="this card")
    return on_cards_below(facts, AMPERE, _CONDITION)
