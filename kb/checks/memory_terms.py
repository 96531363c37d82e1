"""GPU memory by use: the largest group of the terms that a configuration needs, and what these leave open."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import CLEAR, NOT_SHOWN, Change, Outcome
from trainmedic.kb.memory.explain import explanation
from trainmedic.kb.memory.plan import Unplanned


def states(facts: Facts) -> Outcome:
    """Weights, gradients and optimizer states; also asks for what is missing where memory ran out."""
    found = explanation(facts)
    if found.failure is not None and found.in_training and isinstance(found.plan, Unplanned) and found.plan.missing:
        return Outcome(value=None, evidence=(found.failure.span,), missing=found.plan.missing, user_provided=True)
    return _fullest(facts, "states")


def logits(facts: Facts) -> Outcome:
    return _fullest(facts, "logits")


def activations(facts: Facts) -> Outcome:
    return _fullest(facts, "activations")


def something_else(facts: Facts) -> Outcome:
    """Idle blocks, other processes, tensors that the configuration does not explain; live tensors of a snapshot."""
    found = explanation(facts)
    if found.failure is None and not found.seen:
        return NOT_SHOWN
    if found.too_large or not found.notable:
        return CLEAR
    return Outcome(value=True, evidence=found.spans, user_provided=True, values=found.told())


def _fullest(facts: Facts, group: str) -> Outcome:
    found = explanation(facts)
    if found.estimate is None or found.room is None:
        return NOT_SHOWN
    if not found.too_large or found.fullest != group:
        return CLEAR
    changes = [
        Change(set=remedy.set, safety=remedy.safety, alternative=number > 0)
        for number, remedy in enumerate(found.remedies)
    ]
    return Outcome(value=True, evidence=found.spans, user_provided=True, values=found.told(), changes=tuple(changes))
