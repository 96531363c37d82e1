"""A resumed run whose checkpoint has done all the steps that are planned."""

from __future__ import annotations

import re

from kb.rules.facts import Facts
from kb.rules.logic.log_text import first
from kb.rules.outcome import Outcome

_TOTAL = re.compile(r"Total optimization steps = (?P<steps>[0-9,]{1,15})")
_DONE = re.compile(r"Continuing training from global step (?P<steps>[0-9,]{1,15})")


def check(facts: Facts) -> Outcome:
    """Fires where the step to continue from is not below the planned number."""
    total = first(facts, "Total optimization steps", _TOTAL)
    done = first(facts, "Continuing training from global step", _DONE)
    if total is None or done is None:
        return Outcome(value=None)
    planned, reached = _steps(total.text), _steps(done.text)
    if reached < planned:
        return Outcome(value=False)
    return Outcome(
        value=True, evidence=(total, done), brought=True, values={"total": str(planned), "step": str(reached)}
    )


def _steps(text: str) -> int:
    return int("0" + "".join(character for character in text if character in "0123456789"))
