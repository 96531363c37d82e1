"""The completion collator of TRL before 0.20 could not find its marker; how often it says so."""

from __future__ import annotations

import re

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.log_text import MOST, lines

_KEY = re.compile(r"Could not find (?:response|instruction) key `?[^`\n]{0,80}`?")
LEAST = 2
"""One such row may be a row that was cut; from here on the marker is the matter."""


def check(facts: Facts) -> Outcome:
    """Fires from the second warning on."""
    found = [*lines(facts, "Could not find response key", _KEY), *lines(facts, "Could not find instruction key", _KEY)]
    if len(found) < LEAST:
        return Outcome(value=None)
    count = f"at least {MOST}" if len(found) >= MOST else str(len(found))
    return Outcome(value=True, evidence=(found[0],), user_provided=True, values={"count": count})
