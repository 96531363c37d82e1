"""The same key twice in one object of a DeepSpeed file."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import CLEAR, Outcome, fires
from trainmedic.kb.rules.shared.reading_problems import deepspeed_problems


def check(facts: Facts) -> Outcome:
    """Fires where one object of a DeepSpeed JSON text holds a key twice."""
    for _, problem in deepspeed_problems(facts, "duplicate_key"):
        if problem.span is not None:
            shown = {"key": problem.message.split(" ", 1)[0]}
            return fires(problem.span, **shown)
    return CLEAR
