"""Curly quotation marks or long dashes in a shell command."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.reading_problems import shell_outcome, shell_problems


def check(facts: Facts) -> Outcome:
    """Fires where the shell would take them as ordinary letters."""
    return shell_outcome(shell_problems(facts, ("typographic",)))
