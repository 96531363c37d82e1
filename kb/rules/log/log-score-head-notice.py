"""A new classification head where a reward model or a classifier starts to train: it has to be new."""

from __future__ import annotations

import re

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.log_text import first
from trainmedic.kb.engine.outcome import NOT_SHOWN, Outcome, fires

_HEAD = re.compile(
    r"newly initialized: \['(?:score|classifier|v_head\.summary|value_head)\.(?:weight|bias)'(?:, '\w+\.bias')?\]"
)
_IDLE = ("inference", "export")


def check(facts: Facts) -> Outcome:
    """Fires where the head is the only new weight and the log goes on with training rows."""
    trained = [row for row in facts.evidence.rows if "loss" in row.metrics]
    if not trained or facts.name("stage").value in _IDLE:
        return NOT_SHOWN
    span = first(facts.evidence, "ForSequenceClassification were not initialized", _HEAD)
    return NOT_SHOWN if span is None else fires(span)
