"""A misspelt name, where the framework drops what it does not know without a word."""

from __future__ import annotations

from kb.rules.facts import Facts
from kb.rules.logic.accepts import UNKNOWN, judged
from kb.rules.logic.option_hints import Offence, hint, report
from kb.rules.outcome import Outcome


def check(facts: Facts) -> Outcome:
    """Fires where a near name exists; a DeepSpeed option outside its section has a rule of its own."""
    found = [
        Offence(option, said.en, said.zh)
        for option, reader, verdict in judged(facts)
        if verdict.kind == UNKNOWN and not reader.strict and (said := hint(reader, verdict.name)).why == "spelling"
        if said.name and (reader.catalogue != "deepspeed" or "." not in said.name)
    ]
    return report(found, facts)
