"""A name that no release has and nothing resembles, where the framework drops it without a word."""

from __future__ import annotations

from kb.rules.facts import Facts
from kb.rules.logic.accepts import UNKNOWN, judged
from kb.rules.logic.option_hints import Offence, hint, report
from kb.rules.outcome import Outcome


def check(facts: Facts) -> Outcome:
    """Fires on what is neither known nor near to anything; DeepSpeed's top level is left alone."""
    found = [
        Offence(option, "", "")
        for option, reader, verdict in judged(facts)
        if verdict.kind == UNKNOWN and not reader.strict and reader.catalogue != "deepspeed"
        if hint(reader, verdict.name).why == "none"
    ]
    return report(found, facts)
