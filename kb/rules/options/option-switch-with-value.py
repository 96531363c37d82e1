"""A value behind a switch that takes none."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.option_offences import Offence, report
from trainmedic.kb.rules.shared.option_readers import judged
from trainmedic.kb.rules.shared.option_values import takes_no_value


def check(facts: Facts) -> Outcome:
    """Fires where the reader stops at it."""
    found = [
        Offence(option, f"it is a switch: leave {option.raw!r} out", f"它是开关，后面不能写 {option.raw!r}")
        for option, reader, verdict in judged(facts)
        if takes_no_value(option, reader, verdict)
    ]
    return report(found, facts)
