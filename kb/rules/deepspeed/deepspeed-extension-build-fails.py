"""DeepSpeed could not build one of its C++ or CUDA extensions."""

from __future__ import annotations

import re

from kb.rules.facts import Facts
from kb.rules.logic.log_text import any_of
from kb.rules.outcome import Outcome

_TEXTS = (
    ("cuda/cpp extensions without a matching cuda version", None),
    ("has no attribute 'ds_opt_adam'", None),
    ("Unable to JIT load the", re.compile(r"Unable to JIT load the \w+ op due to")),
)


def check(facts: Facts) -> Outcome:
    """Fires on the first of these texts that a log holds."""
    return any_of(facts, _TEXTS)
