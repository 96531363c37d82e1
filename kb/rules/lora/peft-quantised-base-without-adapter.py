"""A 4-bit or 8-bit base that is trained without an adapter.

The rule is the condition below. A module because an adapter may be made in ways that are no option: a helper's
configuration handed to ``get_peft_model``, ``PeftModel.from_pretrained``, ``add_adapter``. A Python script that
mentions any of these is left alone.
"""

from __future__ import annotations

import re
from dataclasses import replace

from kb.model.run import Origin
from kb.rules.expr import compile_expression
from kb.rules.facts import Facts
from kb.rules.outcome import Outcome
from kb.rules.page import vocabulary

WHEN = """
(load_in_4bit == True or load_in_8bit == True) and use_peft == False
"""
_CONDITION = compile_expression(WHEN, vocabulary())
_ADAPTER = re.compile(r"peft|adapter|lora", re.IGNORECASE)


def check(facts: Facts) -> Outcome:
    """Fires where a quantised base has nothing on top of it that could be trained."""
    outcome = _CONDITION.explain(facts)
    if outcome.value is False or _script_mentions_adapters(facts):
        return Outcome(value=False)
    return replace(outcome, values={"bits": "4" if facts.name("load_in_4bit").value is True else "8"})


def _script_mentions_adapters(facts: Facts) -> bool:
    """Whether a pasted file with Python options says anything about PEFT, adapters or LoRA."""
    scripts = {option.span.attachment for option in facts.run.options if option.origin is Origin.PYTHON}
    return any(source.name in scripts and _ADAPTER.search(source.text) for source in facts.evidence.sources)
