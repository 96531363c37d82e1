"""The Trainer says that it wraps the model in torch's DataParallel."""

from __future__ import annotations

from kb.rules.facts import Facts
from kb.rules.logic.log_text import first, told
from kb.rules.outcome import Outcome

TEXT = "Training with DataParallel so batch size has been adjusted to"


def check(facts: Facts) -> Outcome:
    """Fires on the Trainer's line, unless the command shows it too: that is another rule's."""
    if facts.written("visible_devices").value is True:
        return Outcome(value=False)
    return told(first(facts, TEXT))
