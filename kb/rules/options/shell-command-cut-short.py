"""A shell command that ends before the flags written below it."""

from __future__ import annotations

from kb.rules.facts import Facts
from kb.rules.logic.shell_flaws import flaws, told
from kb.rules.outcome import Outcome


def check(facts: Facts) -> Outcome:
    """Fires where a blank behind a backslash, a comment or a missing backslash ends the command early."""
    found = flaws(facts, ("blank_after_backslash", "comment_in_command", "missing_backslash"))
    found = [each for each in found if "lost to it: " in each.message]
    return told(found)
