"""bfloat16 training on a card older than Ampere, which has no bfloat16 units. The card is named outside the options."""

from __future__ import annotations

from trainmedic.kb.engine.expressions import compile_expression
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.engine.vocabulary import vocabulary
from trainmedic.kb.rules.shared.graphics_cards import on_cards_below

AMPERE = 8.0
_CONDITION = compile_expression(
    '(written("bf16") and bf16 == True) or (written("deepspeed_bf16") and deepspeed_bf16 == True)', vocabulary()
)


def check(facts: Facts) -> Outcome:
    """Fires where bf16 is written and every card that is named is older than Ampere."""
    return on_cards_below(facts, AMPERE, _CONDITION)
