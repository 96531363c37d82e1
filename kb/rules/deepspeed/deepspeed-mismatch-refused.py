"""The Hugging Face integration's refusal of a DeepSpeed file. A module because the message has several lines."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.log_text import first, told


def check(facts: Facts) -> Outcome:
    """Fires on the message of trainer_config_finalize."""
    return told(first(facts, "values that mismatch TrainingArguments"))
