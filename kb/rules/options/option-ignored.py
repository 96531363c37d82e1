"""A name that no release has and nothing resembles, where the framework drops it without a word."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.option_offences import Offence, hint, report
from trainmedic.kb.rules.shared.option_readers import UNKNOWN, judged


def check(facts: Facts) -> Outcome:
    """Fires on what is neither known nor near to anything; DeepSpeed's top level is left alone."""
    found = [
        Offence(option, "", "")
        for option, reader, verdict in judged(facts)
        if verdict.kind == UNKNOWN and not reader.strict and reader.catalogue != "deepspeed"
        if hint(reader, verdict.name).why == "none"
    ]
    return report(found, facts)
