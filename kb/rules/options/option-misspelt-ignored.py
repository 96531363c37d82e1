"""A misspelt name, where the framework drops what it does not know without a word."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.option_offences import Offence, hint, report
from trainmedic.kb.rules.shared.option_readers import UNKNOWN, judged


def check(facts: Facts) -> Outcome:
    """Fires where a near name exists; a DeepSpeed option outside its section has a rule of its own."""
    found = [
        Offence(option, said.en, said.zh)
        for option, reader, verdict in judged(facts)
        if verdict.kind == UNKNOWN and not reader.strict and (said := hint(reader, verdict.name)).why == "spelling"
        if said.name and (reader.catalogue != "deepspeed" or "." not in said.name)
    ]
    return report(found, facts)
