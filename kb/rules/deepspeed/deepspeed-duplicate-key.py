"""The same key twice in one object of a DeepSpeed file."""

from __future__ import annotations

from kb.rules.facts import Facts
from kb.rules.logic.deepspeed_files import flaws
from kb.rules.outcome import Outcome


def check(facts: Facts) -> Outcome:
    """Fires where one object of a DeepSpeed JSON text holds a key twice."""
    for _, problem in flaws(facts, "duplicate_key"):
        if problem.span is not None:
            shown = {"key": problem.message.split(" ", 1)[0]}
            return Outcome(value=True, evidence=(problem.span,), brought=True, values=shown)
    return Outcome(value=False)
