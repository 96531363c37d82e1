"""The tokenizer's length warning, unless something in the same paste shows that nothing truncates."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.log_text import first, told

_NOT_TRUNCATED = ("index out of range", "device-side assert", "indexselect", "srcindex < srcselectdimsize")


def check(facts: Facts) -> Outcome:
    """Fires on the warning where no index error follows it."""
    found = first(facts, "Token indices sequence length is longer than the specified maximum sequence length")
    if found is None or facts.evidence.has("cuda_error"):
        return Outcome(value=None)
    said = (f"{trace.exception}: {trace.message}".lower() for trace in facts.evidence.tracebacks)
    if any(text in words for words in said for text in _NOT_TRUNCATED):
        return Outcome(value=None)
    return told(found)
