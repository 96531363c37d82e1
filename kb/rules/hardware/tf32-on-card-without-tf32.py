"""TF32 asked of a card older than Ampere. The card is named outside the options."""

from __future__ import annotations

from trainmedic.kb.engine.expressions import compile_expression
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.engine.vocabulary import vocabulary
from trainmedic.kb.rules.shared.graphics_cards import on_cards_below

AMPERE = 8.0
_CONDITION = compile_expression('written("tf32") and tf32 == True', vocabulary())


def check(facts: Facts) -> Outcome:
    """Fires where tf32 is written as true and every card that is named is older than Ampere."""
    return on_cards_below(facts, AMPERE, _CONDITION)
