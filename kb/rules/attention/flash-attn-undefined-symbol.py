"""The loader's message for a flash-attn binary of another torch."""

from __future__ import annotations

import re

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.log_text import any_of

_TEXTS = (("undefined symbol", re.compile(r"flash_attn[\w./-]{0,80}\.so: undefined symbol: \w{1,120}")),)


def check(facts: Facts) -> Outcome:
    """Fires on the first of these texts that a log holds."""
    return any_of(facts, _TEXTS)
