"""DeepSpeed could not build one of its C++ or CUDA extensions."""

from __future__ import annotations

import re

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.log_text import any_of

_TEXTS = (
    ("cuda/cpp extensions without a matching cuda version", None),
    ("has no attribute 'ds_opt_adam'", None),
    ("Unable to JIT load the", re.compile(r"Unable to JIT load the \w+ op due to")),
)


def check(facts: Facts) -> Outcome:
    """Fires on the first of these texts that a log holds."""
    return any_of(facts, _TEXTS)
