"""Comments, trailing commas or single quotes in a DeepSpeed file that Hugging Face code reads as strict JSON."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.deepspeed_files import flaws

_TRAINERS = ("transformers", "trl", "llamafactory", "ms-swift", "axolotl")


def check(facts: Facts) -> Outcome:
    """Fires where a DeepSpeed file that a Hugging Face trainer is given is not strict JSON but readable."""
    framework = facts.run.framework
    if framework is None or framework.value not in _TRAINERS:
        return Outcome(value=False)
    for region, problem in flaws(facts, "json_error"):
        if "not strict JSON" in problem.message:
            return Outcome(value=True, evidence=(region.options[0].key_span,), user_provided=True)
    return Outcome(value=False)
