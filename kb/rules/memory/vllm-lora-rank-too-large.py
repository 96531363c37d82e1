"""vLLM refuses an adapter of a larger rank than it was started for."""

from __future__ import annotations

import re

from kb.rules.facts import Facts
from kb.rules.logic.log_text import any_of
from kb.rules.outcome import Outcome

_TEXTS = (("is greater than max_lora_rank", re.compile(r"LoRA rank \d+ is greater than max_lora_rank \d+")),)


def check(facts: Facts) -> Outcome:
    """Fires on the first of these texts that a log holds."""
    return any_of(facts, _TEXTS)
