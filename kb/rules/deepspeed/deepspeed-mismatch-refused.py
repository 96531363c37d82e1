"""The Hugging Face integration's refusal of a DeepSpeed file. A module because the message has several lines."""

from __future__ import annotations

from kb.rules.facts import Facts
from kb.rules.logic.log_text import first, told
from kb.rules.outcome import Outcome


def check(facts: Facts) -> Outcome:
    """Fires on the message of trainer_config_finalize."""
    return told(first(facts, "values that mismatch TrainingArguments"))
