"""Messages of package pairs that are known not to work together."""

from __future__ import annotations

import re

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.log_text import any_of

_TEXTS = (
    ("cannot import name 'HybridCache' from 'transformers'", None),
    ("keep_torch_compile", re.compile(r"unexpected keyword argument 'keep_torch_compile'")),
    ("dispatch_batches", re.compile(r"unexpected keyword argument 'dispatch_batches'")),
    ("A module that was compiled using NumPy 1.x cannot be run", None),
)


def check(facts: Facts) -> Outcome:
    """Fires on the first of these texts that a log holds."""
    return any_of(facts, _TEXTS)
