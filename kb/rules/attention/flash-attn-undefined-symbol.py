"""The loader's message for a flash-attn binary of another torch."""

from __future__ import annotations

import re

from kb.rules.facts import Facts
from kb.rules.logic.log_text import any_of
from kb.rules.outcome import Outcome

_TEXTS = (("undefined symbol", re.compile(r"flash_attn[\w./-]{0,80}\.so: undefined symbol: \w{1,120}")),)


def check(facts: Facts) -> Outcome:
    """Fires on the first of these texts that a log holds."""
    return any_of(facts, _TEXTS)
