"""fp8 mixed precision on a card older than Ada. The card is named outside the options."""

from __future__ import annotations

from kb.rules.expr import compile_expression
from kb.rules.facts import Facts
from kb.rules.logic.graphics_cards import on_cards_below
from kb.rules.outcome import Outcome
from kb.rules.page import vocabulary

ADA = 8.9
_CONDITION = compile_expression('option("mixed_precision") == "fp8"', vocabulary())


def check(facts: Facts) -> Outcome:
    """Fires where accelerate is asked for fp8 and every card that is named is older than Ada."""
    return on_cards_below(facts, ADA, _CONDITION)
