"""An abbreviated option: argparse takes a beginning that fits one name only."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.option_offences import Offence, report
from trainmedic.kb.rules.shared.option_readers import KNOWN, judged


def check(facts: Facts) -> Outcome:
    """Fires where the full name is another than the one written."""
    found = [
        Offence(option, f"read as {verdict.name}", f"会被读成 {verdict.name}")
        for option, reader, verdict in judged(facts)
        if verdict.kind == KNOWN and verdict.info is not None and verdict.info.abbreviated and reader.how == "argparse"
    ]
    return report(found, facts)
