"""Ray's memory monitor killed a worker: two of its messages."""

from __future__ import annotations

import re

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.log_text import any_of

_TEXTS = (
    ("running low on memory", re.compile(r"[Tt]ask was killed due to the node running low on memory")),
    ("due to memory pressure", re.compile(r"[Ww]orkers \(tasks / actors\) killed due to memory pressure \(OOM\)")),
)


def check(facts: Facts) -> Outcome:
    """Fires on the first of these texts that a log holds."""
    return any_of(facts, _TEXTS)
