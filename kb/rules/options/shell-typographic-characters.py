"""Curly quotation marks or long dashes in a shell command."""

from __future__ import annotations

from kb.rules.facts import Facts
from kb.rules.outcome import Outcome
from kb.rules.shell_flaws import flaws


def check(facts: Facts) -> Outcome:
    """Fires where the shell would take them as ordinary letters."""
    found = flaws(facts, ("typographic",))
    if not found:
        return Outcome(value=False)
    said = "; ".join(dict.fromkeys(each.message.partition("lost to it: ")[2] for each in found))
    return Outcome(
        value=True,
        evidence=tuple(dict.fromkeys(each.span for each in found if each.span is not None)),
        brought=True,
        values={"lost": said},
    )
