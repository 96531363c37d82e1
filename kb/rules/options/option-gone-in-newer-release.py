"""No version is given, and the newest release no longer has the name."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.option_offences import Offence, moved, report
from trainmedic.kb.rules.shared.option_readers import RETIRED, judged


def check(facts: Facts) -> Outcome:
    """Fires where it depends on the version whether a name is accepted; not where most names are of an old release."""
    found, packages, written = [], [], 0
    for option, reader, verdict in judged(facts):
        written += 1
        if verdict.kind == RETIRED:
            found.append(Offence(option, *moved(reader, verdict)))
            packages += [reader.catalogue, verdict.info.framework if verdict.info is not None else ""]
    return report(found if 2 * len(found) <= written else (), facts, packages)
