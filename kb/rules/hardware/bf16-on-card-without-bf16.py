"""bfloat16 training on a card older than Ampere, which has no bfloat16 units. The card is named outside the options."""

from __future__ import annotations

from kb.rules.expr import compile_expression
from kb.rules.facts import Facts
from kb.rules.logic.graphics_cards import on_cards_below
from kb.rules.outcome import Outcome
from kb.rules.page import vocabulary

AMPERE = 8.0
_CONDITION = compile_expression(
    '(written("bf16") and bf16 == True) or (written("deepspeed_bf16") and deepspeed_bf16 == True)', vocabulary()
)


def check(facts: Facts) -> Outcome:
    """Fires where bf16 is written and every card that is named is older than Ampere."""
    return on_cards_below(facts, AMPERE, _CONDITION)
