"""A word that the option's closed list does not have."""

from __future__ import annotations

from kb.rules.facts import Facts
from kb.rules.logic.accepts import judged
from kb.rules.logic.option_hints import Offence, report
from kb.rules.logic.option_values import not_a_choice
from kb.rules.outcome import Outcome


def check(facts: Facts) -> Outcome:
    """Fires where the reader refuses the value."""
    found = [
        Offence(option, *said)
        for option, reader, verdict in judged(facts)
        if (said := not_a_choice(option, reader, verdict)) is not None
    ]
    return report(found, facts)
