"""A name of an older or newer release, where the framework drops what it does not know."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.option_offences import Offence, moved, report
from trainmedic.kb.rules.shared.option_readers import GONE, LATER, judged


def check(facts: Facts) -> Outcome:
    """Fires where the release in use has the name no more, or not yet."""
    found, packages = [], []
    for option, reader, verdict in judged(facts):
        if verdict.kind in (GONE, LATER) and not reader.strict:
            found.append(Offence(option, *moved(reader, verdict)))
            packages += [reader.catalogue, verdict.info.framework if verdict.info is not None else ""]
    return report(found, facts, packages)
