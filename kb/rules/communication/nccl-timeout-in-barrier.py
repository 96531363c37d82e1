"""A barrier timed out, and the paste shows that some rank was busy with something long."""

from __future__ import annotations

import re

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.log_text import first

_BARRIER = re.compile(r"WorkNCCL\(SeqNum=\d+, OpType=(?:ALLREDUCE|BROADCAST), NumelIn=1,")
_WORK = (
    "Running tokenizer", "Tokenizing", "Converting format", "Map (num_proc=", "Generating train split",
    "Saving model checkpoint", "Packing", "Preprocessing",
)  # fmt: skip


def check(facts: Facts) -> Outcome:
    """Fires where both are in the paste, or where the barrier is that of work that one process does first."""
    for trace in facts.evidence.tracebacks:
        if "timeout" in trace.message.lower() and any(frame.endswith(" main_process_first") for frame in trace.frames):
            return Outcome(value=True, evidence=(trace.span,), user_provided=True)
    barrier = first(facts, "NumelIn=1,", _BARRIER)
    work = next((span for text in _WORK if (span := first(facts, text)) is not None), None)
    if barrier is None or work is None:
        return Outcome(value=False)
    return Outcome(value=True, evidence=(barrier, work), user_provided=True)
