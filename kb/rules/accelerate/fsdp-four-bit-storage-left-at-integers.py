"""FSDP 1 with a 4-bit model of a Python script that leaves the storage dtype at its default, uint8.

A module because a missing accelerate file must not make every 4-bit script an open question.
"""

from __future__ import annotations

from trainmedic.kb.engine.expressions import compile_expression
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.engine.vocabulary import vocabulary

_CONDITION = compile_expression(
    'option("distributed_type", "accelerate") == "FSDP" and option("load_in_4bit", "BitsAndBytesConfig") == True '
    'and not has_option("bnb_4bit_quant_storage") '
    'and maybe(option("fsdp_config.fsdp_version") != 2) and maybe(option("fsdp_version") != 2)',
    vocabulary(),
)


def check(facts: Facts) -> Outcome:
    """Fires where the file and the script are both there; clear where either is missing."""
    outcome = _CONDITION.explain(facts)
    return outcome if outcome.value is True else Outcome(value=False)
