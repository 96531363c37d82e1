"""Ray's memory monitor killed a worker: two of its messages."""

from __future__ import annotations

import re

from kb.rules.facts import Facts
from kb.rules.logic.log_text import any_of
from kb.rules.outcome import Outcome

_TEXTS = (
    ("running low on memory", re.compile(r"[Tt]ask was killed due to the node running low on memory")),
    ("due to memory pressure", re.compile(r"[Ww]orkers \(tasks / actors\) killed due to memory pressure \(OOM\)")),
)


def check(facts: Facts) -> Outcome:
    """Fires on the first of these texts that a log holds."""
    return any_of(facts, _TEXTS)
