"""Reward weights of GRPO (or RLOO) against the number of reward functions.

A module because the elements of ``reward_funcs`` are names that nothing resolves: only their number is known.
"""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import CLEAR, Outcome, fires
from trainmedic.kb.model.run import Option


def check(facts: Facts) -> Outcome:
    """Fires where both lists are written in the script and differ in length."""
    weights = _last(facts, "reward_weights", ("GRPOConfig", "RLOOConfig"))
    functions = _last(facts, "reward_funcs", ("GRPOTrainer", "RLOOTrainer"))
    if weights is None or functions is None:
        return CLEAR
    first, second = weights.value, functions.value
    if not isinstance(first, tuple) or not isinstance(second, tuple) or len(first) == len(second):
        return CLEAR
    return fires(weights.span, functions.span, weights=str(len(first)), functions=str(len(second)))


def _last(facts: Facts, key: str, scopes: tuple[str, ...]) -> Option | None:
    options = [option for option in facts.options(key) if option.scope in scopes]
    return options[-1] if options else None
