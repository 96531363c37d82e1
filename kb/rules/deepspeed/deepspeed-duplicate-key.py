"""The same key twice in one object of a DeepSpeed file."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.deepspeed_files import flaws


def check(facts: Facts) -> Outcome:
    """Fires where one object of a DeepSpeed JSON text holds a key twice."""
    for _, problem in flaws(facts, "duplicate_key"):
        if problem.span is not None:
            shown = {"key": problem.message.split(" ", 1)[0]}
            return Outcome(value=True, evidence=(problem.span,), user_provided=True, values=shown)
    return Outcome(value=False)
