"""Ray's words for a /dev/shm that is too small: a SIGBUS, or the notice at the start."""

from __future__ import annotations

import re

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.log_text import any_of

_TEXTS = (
    ("SIGBUS", re.compile(r"\*{3} SIGBUS received at time")),
    ("instead of /dev/shm", re.compile(r"object store is using \S+ instead of /dev/shm")),
)


def check(facts: Facts) -> Outcome:
    """Fires on the first of these texts that a log holds."""
    return any_of(facts, _TEXTS)
