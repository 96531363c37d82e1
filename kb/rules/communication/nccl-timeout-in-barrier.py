"""A collective of one element timed out, and the log shows that some rank was busy with something long."""

from __future__ import annotations

import re

from kb.rules.facts import Facts
from kb.rules.logic.log_text import first
from kb.rules.outcome import Outcome

_BARRIER = re.compile(r"WorkNCCL\(SeqNum=\d+, OpType=(?:ALLREDUCE|BROADCAST), NumelIn=1,")
_WORK = (
    "Running tokenizer", "Tokenizing", "Converting format", "Map (num_proc=", "Generating train split",
    "Saving model checkpoint", "Packing", "Preprocessing",
)  # fmt: skip


def check(facts: Facts) -> Outcome:
    """Fires where both are in the paste."""
    barrier = first(facts, "NumelIn=1,", _BARRIER)
    work = next((span for text in _WORK if (span := first(facts, text)) is not None), None)
    if barrier is None or work is None:
        return Outcome(value=False)
    return Outcome(value=True, evidence=(barrier, work), brought=True)
