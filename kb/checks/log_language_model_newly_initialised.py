"""Weights of a language model that the checkpoint did not hold, in both wordings of transformers."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.log_text import lines
from trainmedic.kb.engine.outcome import NOT_SHOWN, Outcome, fires
from trainmedic.kb.lazy import regex

_LIST = regex(r"newly initialized: \[(?P<names>[^\]\n]{1,4000})")
_ROW = regex(r"(?:lm_head|[\w.{}, ]*(?:embed_tokens|_proj|wte|c_attn))\.weight\s*\|\s*MISSING")
_COMPUTED = ("rotary", "inv_freq", "masked_bias", "attn.bias", "position_ids")


def check(facts: Facts) -> Outcome:
    """Fires on a list with a learned weight in it, for a class that ends in ForCausalLM."""
    for span in lines(facts.evidence, "ForCausalLM were not initialized from the model checkpoint", _LIST):
        names = [name.strip(" '") for name in span.text.partition("[")[2].split(",")]
        learned = [name for name in names if name and not any(part in name for part in _COMPUTED)]
        if learned:
            return fires(span, name=learned[0], count=len(learned))
    for span in lines(facts.evidence, "MISSING", _ROW):
        return fires(span, name=span.text.partition("|")[0].strip(), count="1 or more")
    return NOT_SHOWN
