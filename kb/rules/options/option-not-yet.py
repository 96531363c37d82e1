"""A name that only a later release than the installed one has."""

from __future__ import annotations

from kb.rules.facts import Facts
from kb.rules.logic.accepts import LATER, judged
from kb.rules.logic.option_hints import Offence, moved, report
from kb.rules.outcome import Outcome


def check(facts: Facts) -> Outcome:
    """Fires where the name came after the release in use."""
    found, packages = [], []
    for option, reader, verdict in judged(facts):
        if verdict.kind == LATER and reader.strict:
            found.append(Offence(option, *moved(reader, verdict)))
            packages += [reader.catalogue, verdict.info.framework if verdict.info is not None else ""]
    return report(found, facts, packages)
