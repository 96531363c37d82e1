"""Curly quotation marks or long dashes in a shell command."""

from __future__ import annotations

from kb.rules.facts import Facts
from kb.rules.logic.shell_flaws import flaws, told
from kb.rules.outcome import Outcome


def check(facts: Facts) -> Outcome:
    """Fires where the shell would take them as ordinary letters."""
    return told(flaws(facts, ("typographic",)))
