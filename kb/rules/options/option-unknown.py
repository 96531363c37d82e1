"""A name that no release of the framework has, where its own entry point refuses what it does not know."""

from __future__ import annotations

from kb.rules.facts import Facts
from kb.rules.logic.accepts import UNKNOWN, judged
from kb.rules.logic.option_hints import Offence, hint, report
from kb.rules.outcome import Outcome


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
