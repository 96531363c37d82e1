"""Ray's words for a /dev/shm that is too small: a SIGBUS, or the notice at the start."""

from __future__ import annotations

import re

from kb.rules.facts import Facts
from kb.rules.logic.log_text import any_of
from kb.rules.outcome import Outcome

_TEXTS = (
    ("SIGBUS", re.compile(r"\*{3} SIGBUS received at time")),
    ("instead of /dev/shm", re.compile(r"object store is using \S+ instead of /dev/shm")),
)


def check(facts: Facts) -> Outcome:
    """Fires on the first of these texts that a log holds."""
    return any_of(facts, _TEXTS)
