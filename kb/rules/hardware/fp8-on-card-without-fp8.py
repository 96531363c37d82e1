"""fp8 mixed precision on a card older than Ada. The card is named outside the options."""

from __future__ import annotations

from trainmedic.kb.engine.expressions import compile_expression
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.engine.vocabulary import vocabulary
from trainmedic.kb.rules.shared.graphics_cards import on_cards_below

ADA = 8.9
_CONDITION = compile_expression('option("mixed_precision") == "fp8"', vocabulary())


def check(facts: Facts) -> Outcome:
    """Fires where accelerate is asked for fp8 and every card that is named is older than Ada."""
    return on_cards_below(facts, ADA, _CONDITION)
