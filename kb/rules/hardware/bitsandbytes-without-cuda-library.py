"""bitsandbytes did not find its library for the CUDA of torch."""

from __future__ import annotations

import re

from kb.rules.facts import Facts
from kb.rules.logic.log_text import any_of
from kb.rules.outcome import Outcome

_TEXTS = (
    ("CUDA Setup failed despite", re.compile(r"CUDA Setup failed despite (?:GPU|CUDA) being available")),
    ("compiled without GPU support", re.compile(r"installed version of bitsandbytes was compiled without GPU support")),
    ("Attempted to use bitsandbytes native library functionality", None),
    ("binary not found at", re.compile(r"Configured (?:CUDA|ROCm|XPU) binary not found at \S+")),
)


def check(facts: Facts) -> Outcome:
    """Fires on the first of these texts that a log holds."""
    return any_of(facts, _TEXTS)
