"""Ray's message for a worker that could not register."""

from __future__ import annotations

import re

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.log_text import any_of

_TEXTS = (("register worker", re.compile(r"(?:Failed|Unable) to register worker (?:to|with) [Rr]aylet")),)


def check(facts: Facts) -> Outcome:
    """Fires on the first of these texts that a log holds."""
    return any_of(facts, _TEXTS)
