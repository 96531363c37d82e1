"""The tokenizer's length warning, unless something in the same paste shows that nothing truncates."""

from __future__ import annotations

from kb.rules.facts import Facts
from kb.rules.logic.log_text import first, told
from kb.rules.outcome import Outcome

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
