"""A name that only a later release than the installed one has."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.option_offences import Offence, moved, report
from trainmedic.kb.rules.shared.option_readers import LATER, judged


def check(facts: Facts) -> Outcome:
    """Fires where the name came after the release in use."""
    found, packages = [], []
    for option, reader, verdict in judged(facts):
        if verdict.kind == LATER and reader.strict:
            found.append(Offence(option, *moved(reader, verdict)))
            packages += [reader.catalogue, verdict.info.framework if verdict.info is not None else ""]
    return report(found, facts, packages)
