"""vLLM refuses an adapter of a larger rank than it was started for."""

from __future__ import annotations

import re

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.log_text import any_of

_TEXTS = (("is greater than max_lora_rank", re.compile(r"LoRA rank \d+ is greater than max_lora_rank \d+")),)


def check(facts: Facts) -> Outcome:
    """Fires on the first of these texts that a log holds."""
    return any_of(facts, _TEXTS)
