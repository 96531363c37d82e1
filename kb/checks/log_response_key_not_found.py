"""The completion collator of TRL before 0.20 could not find its marker; how often it says so."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.log_text import MOST, lines
from trainmedic.kb.engine.outcome import NOT_SHOWN, Outcome, fires
from trainmedic.kb.lazy import regex

_KEY = regex(r"Could not find (?:response|instruction) key `?[^`\n]{0,80}`?")
LEAST = 2
"""One such row may be a row that was cut; from here on the marker is the matter."""


def check(facts: Facts) -> Outcome:
    """Fires from the second warning on."""
    evidence = facts.evidence
    warnings = [
        *lines(evidence, "Could not find response key", _KEY),
        *lines(evidence, "Could not find instruction key", _KEY),
    ]
    if len(warnings) < LEAST:
        return NOT_SHOWN
    return fires(warnings[0], count=f"at least {MOST}" if len(warnings) >= MOST else len(warnings))
