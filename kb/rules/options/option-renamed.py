"""A name that the installed release calls differently, where its entry point refuses the old one."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.option_offences import Offence, moved, report, successor
from trainmedic.kb.rules.shared.option_readers import GONE, judged


def check(facts: Facts) -> Outcome:
    """Fires where the release lacks the name and has its successor."""
    found, packages = [], []
    for option, reader, verdict in judged(facts):
        if verdict.kind == GONE and reader.strict and successor(reader, verdict.name) is not None:
            found.append(Offence(option, *moved(reader, verdict)))
            packages += [reader.catalogue, verdict.info.framework if verdict.info is not None else ""]
    return report(found, facts, packages)
