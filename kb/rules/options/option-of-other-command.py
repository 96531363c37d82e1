"""A name of the same framework, but of another of its commands or classes."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.option_offences import Offence, hint, report
from trainmedic.kb.rules.shared.option_readers import ELSEWHERE, judged

_MOST = 4


def check(facts: Facts) -> Outcome:
    """Fires where the release has the name, and never had it for the command or class in use."""
    found, packages = [], []
    for option, reader, verdict in judged(facts):
        if verdict.kind != ELSEWHERE or not reader.strict or verdict.info is None:
            continue
        owners = ", ".join(verdict.info.owners[:_MOST]) + (" …" if len(verdict.info.owners) > _MOST else "")
        said = hint(reader, verdict.name)
        en, zh = (f"; {said.en}", f"；{said.zh}") if said.name else ("", "")
        own = reader.owners[0]
        found.append(Offence(option, f"only for {owners}, not for {own}{en}", f"只属于 {owners}，{own} 没有{zh}"))
        packages.append(reader.catalogue)
    return report(found, facts, packages)
