"""A name that no release of the framework has, where its own entry point refuses what it does not know."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.option_offences import Offence, hint, report
from trainmedic.kb.rules.shared.option_readers import UNKNOWN, judged


def check(facts: Facts) -> Outcome:
    """Fires on a name that is not another framework's; without a version only where a near name exists."""
    found, packages = [], []
    for option, reader, verdict in judged(facts):
        if verdict.kind != UNKNOWN or not reader.strict:
            continue
        said = hint(reader, verdict.name)
        if said.why != "foreign" and (said.name or reader.exact is not None):
            found.append(Offence(option, said.en, said.zh))
            packages.append("" if said.name else reader.catalogue)
    return report(found, facts, packages)
