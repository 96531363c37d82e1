"""TF32 asked of a card older than Ampere. The card is named outside the options."""

from __future__ import annotations

from kb.rules.expr import compile_expression
from kb.rules.facts import Facts
from kb.rules.logic.graphics_cards import on_cards_below
from kb.rules.outcome import Outcome
from kb.rules.page import vocabulary

AMPERE = 8.0
_CONDITION = compile_expression('written("tf32") and tf32 == True', vocabulary())


def check(facts: Facts) -> Outcome:
    """Fires where tf32 is written as true and every card that is named is older than Ampere."""
    return on_cards_below(facts, AMPERE, _CONDITION)
