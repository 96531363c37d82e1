"""Ray's message for a worker that could not register."""

from __future__ import annotations

import re

from kb.rules.facts import Facts
from kb.rules.logic.log_text import any_of
from kb.rules.outcome import Outcome

_TEXTS = (("register worker", re.compile(r"(?:Failed|Unable) to register worker (?:to|with) [Rr]aylet")),)


def check(facts: Facts) -> Outcome:
    """Fires on the first of these texts that a log holds."""
    return any_of(facts, _TEXTS)
