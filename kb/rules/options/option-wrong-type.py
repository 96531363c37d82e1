"""A value that is not the number or switch that the option wants."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.option_offences import Offence, report
from trainmedic.kb.rules.shared.option_readers import judged
from trainmedic.kb.rules.shared.option_values import wrong_type


def check(facts: Facts) -> Outcome:
    """Fires where the reader refuses the value."""
    found = [
        Offence(option, *said)
        for option, reader, verdict in judged(facts)
        if (said := wrong_type(option, reader, verdict)) is not None
    ]
    return report(found, facts)
