"""An option of ``zero_optimization`` at the top level of a DeepSpeed file, where DeepSpeed never looks for it."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.option_offences import Offence, hint, report
from trainmedic.kb.rules.shared.option_readers import UNKNOWN, judged


def check(facts: Facts) -> Outcome:
    """Fires on a top-level name that only the section has."""
    found = []
    for option, reader, verdict in judged(facts):
        if reader.catalogue == "deepspeed" and verdict.kind == UNKNOWN and "." not in verdict.name:
            place = hint(reader, verdict.name).name
            if place == f"zero_optimization.{verdict.name}":
                found.append(Offence(option, f"belongs into {place}", f"应写成 {place}"))
    return report(found, facts)
