"""FlashAttention-2 on a card older than Ampere, or its refusal in the log."""

from __future__ import annotations

from trainmedic.kb.engine.expressions import compile_expression
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.engine.vocabulary import vocabulary
from trainmedic.kb.rules.shared.graphics_cards import on_cards_below
from trainmedic.kb.rules.shared.log_text import first, told

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
