"""A 4-bit or 8-bit base that is trained without an adapter.

The rule is the condition below. A module because an adapter may be made in ways that are not options: a helper's
configuration handed to ``get_peft_model``, ``PeftModel.from_pretrained``, ``add_adapter``. A Python script that
mentions any of these is left alone, and so is one that loads several models: the quantised one may be the reference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from trainmedic.kb.engine.expressions import compile_expression
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import CLEAR, Outcome
from trainmedic.kb.engine.vocabulary import vocabulary
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.run import Origin

WHEN = """
(load_in_4bit == True or load_in_8bit == True) and use_peft == False
and not certain(framework == "trl" and matches(entry, "trl *") and (
  (algorithm == "grpo" and version("trl", "<0.26"))
  or (algorithm in ("rloo", "reward") and version("trl", "<1.5"))
  or (algorithm == "kto" and version("trl", "<1.8"))))
"""
_CONDITION = compile_expression(WHEN, vocabulary())
_ADAPTER = regex(r"peft|adapter|lora", re.IGNORECASE)
_MODEL = regex(r"\b(?:\w*Model\w*|\w+For\w+)\s*\.\s*from_pretrained\b")


def check(facts: Facts) -> Outcome:
    """Fires where a quantised base has nothing on top of it that could be trained."""
    outcome = _CONDITION.explain(facts)
    if outcome.value is False or any(_unclear(text) for text in _scripts(facts)):
        return CLEAR
    return replace(outcome, values={"bits": "4" if facts.name("load_in_4bit").value is True else "8"})


def _unclear(script: str) -> bool:
    """Whether a script may make an adapter, or load a quantised model that is not the one it trains."""
    return _ADAPTER.search(script) is not None or len(_MODEL.findall(script)) > 1


def _scripts(facts: Facts) -> Iterator[str]:
    """The texts of the pasted files that hold this run's Python options."""
    names = {option.span.attachment for option in facts.run.options if option.origin is Origin.PYTHON}
    return (source.text for source in facts.evidence.sources if source.name in names)
