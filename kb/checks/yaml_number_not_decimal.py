"""A number with a leading zero or with colons: YAML 1.1 reads it in base 8 or 60."""

from __future__ import annotations

from trainmedic.kb.checks.option_offences import Offence, report
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.run import Origin

_OCTAL = regex(r"[+-]?0[0-7]*[1-7][0-7]*")
_SIXTY = regex(r"[+-]?[1-9][0-9]*(?::[0-5]?[0-9])+")


def check(facts: Facts) -> Outcome:
    """Fires on an unquoted whole number of a YAML file that is not what it looks like."""
    offences = [
        Offence(option, f"{option.raw} is {option.value}", f"{option.raw} 读成 {option.value}")
        for option in facts.run.options
        if option.origin is Origin.YAML and not option.quoted and isinstance(option.value, int)
        if not isinstance(option.value, bool) and option.raw and str(option.value) != option.raw
        if _OCTAL.fullmatch(option.raw) or _SIXTY.fullmatch(option.raw)
    ]
    return report(offences, facts)
