"""A shell command that ends before the flags written below it."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.reading_problems import shell_outcome, shell_problems


def check(facts: Facts) -> Outcome:
    """Fires where a blank behind a backslash, a comment or a missing backslash ends the command early."""
    found = shell_problems(facts, ("blank_after_backslash", "comment_in_command", "missing_backslash"))
    found = [each for each in found if "lost to it: " in each.message]
    return shell_outcome(found)
