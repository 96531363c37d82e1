"""Comments, trailing commas or single quotes in a DeepSpeed file that Hugging Face code reads as strict JSON."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import CLEAR, Outcome, fires
from trainmedic.kb.rules.shared.reading_problems import deepspeed_problems

_TRAINERS = ("transformers", "trl", "llamafactory", "ms-swift", "axolotl")


def check(facts: Facts) -> Outcome:
    """Fires where a DeepSpeed file that a Hugging Face trainer is given is not strict JSON but readable."""
    framework = facts.run.framework
    if framework is None or framework.value not in _TRAINERS:
        return CLEAR
    for region, problem in deepspeed_problems(facts, "json_error"):
        if "not strict JSON" in problem.message:
            return fires(region.options[0].key_span)
    return CLEAR
