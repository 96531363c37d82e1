"""Another framework's word for a setting, where the framework in use drops it without a word."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.option_offences import Offence, hint, report
from trainmedic.kb.rules.shared.option_readers import UNKNOWN, judged


def check(facts: Facts) -> Outcome:
    """Fires on a name that elsewhere means a setting which has another name here."""
    found = [
        Offence(option, said.en, said.zh)
        for option, reader, verdict in judged(facts)
        if verdict.kind == UNKNOWN and not reader.strict and (said := hint(reader, verdict.name)).why == "foreign"
    ]
    return report(found, facts)
