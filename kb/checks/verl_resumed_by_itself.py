"""A checkpoint that verl found by itself: the log names the step, and the command asked for none."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.log_text import first
from trainmedic.kb.engine.outcome import CLEAR, NOT_SHOWN, Outcome, fires
from trainmedic.kb.lazy import regex

_TEXTS = (
    ("Load from checkpoint folder:", regex(r"Load from checkpoint folder: \S*global_step_([0-9]{1,9})")),
    ("Resuming from", regex(r"Resuming from \S*global_step_([0-9]{1,9})")),
)
_CHOSEN = ("resume_path", "disable")


def check(facts: Facts) -> Outcome:
    """Fires on verl's line about a loaded step unless the command chose how to resume."""
    if facts.option("trainer.resume_mode").value in _CHOSEN:
        return CLEAR
    for literal, pattern in _TEXTS:
        span = first(facts.evidence, literal, pattern)
        match = pattern.search(span.text) if span is not None else None
        if span is not None and match is not None:
            return fires(span, step=match[1])
    return NOT_SHOWN
