"""torch says that it has no kernels for the card."""

from __future__ import annotations

import re

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.log_text import any_of

_TEXTS = (
    ("with CUDA capability", re.compile(r"with CUDA capability sm_\d{2,3} is not compatible")),
    ("no kernel image is available for execution on the device", None),
    ("which is of cuda capability", re.compile(r"which is of (?:cuda|compute) capability \d+\.\d")),
)


def check(facts: Facts) -> Outcome:
    """Fires on the first of these texts that a log holds."""
    return any_of(facts, _TEXTS)
