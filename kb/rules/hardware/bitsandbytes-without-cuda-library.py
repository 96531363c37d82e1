"""bitsandbytes did not find its library for the CUDA of torch."""

from __future__ import annotations

import re

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.log_text import any_of

_TEXTS = (
    ("CUDA Setup failed despite", re.compile(r"CUDA Setup failed despite (?:GPU|CUDA) being available")),
    ("compiled without GPU support", re.compile(r"installed version of bitsandbytes was compiled without GPU support")),
    ("Attempted to use bitsandbytes native library functionality", None),
    ("binary not found at", re.compile(r"Configured (?:CUDA|ROCm|XPU) binary not found at \S+")),
)


def check(facts: Facts) -> Outcome:
    """Fires on the first of these texts that a log holds."""
    return any_of(facts, _TEXTS)
