"""Weights of a language model that the checkpoint did not hold, in both wordings of transformers."""

from __future__ import annotations

import re

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.log_text import lines, told

_LIST = re.compile(r"newly initialized: \[(?P<names>[^\]\n]{1,4000})")
_ROW = re.compile(r"(?:lm_head|[\w.{}, ]*(?:embed_tokens|_proj|wte|c_attn))\.weight\s*\|\s*MISSING")
_COMPUTED = ("rotary", "inv_freq", "masked_bias", "attn.bias", "position_ids")


def check(facts: Facts) -> Outcome:
    """Fires on a list with a learned weight in it, for a class that ends in ForCausalLM."""
    for span in lines(facts, "ForCausalLM were not initialized from the model checkpoint", _LIST):
        names = [name.strip(" '") for name in span.text.partition("[")[2].split(",")]
        learned = [name for name in names if name and not any(part in name for part in _COMPUTED)]
        if learned:
            return told(span, name=learned[0], count=str(len(learned)))
    for span in lines(facts, "MISSING", _ROW):
        return told(span, name=span.text.partition("|")[0].strip(), count="1 or more")
    return Outcome(value=None)
