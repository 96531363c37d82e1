"""The first collective of a process group timed out although no rank shows other work, nor an exception."""

from __future__ import annotations

import re

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.log_text import first, told

_FIRST = re.compile(r"WorkNCCL\(SeqNum=1, OpType=\w+")
_WORK = (
    "Running tokenizer", "Tokenizing", "Converting format", "Map (num_proc=", "Generating train split",
    "Saving model checkpoint", "Packing", "Preprocessing",
)  # fmt: skip


def check(facts: Facts) -> Outcome:
    """Fires where nothing else in the paste explains why a rank did not come."""
    busy = any(first(facts, text) is not None for text in _WORK)
    failed = any("DistBackendError" not in trace.exception for trace in facts.evidence.tracebacks)
    return Outcome(value=False) if busy or failed else told(first(facts, "SeqNum=1,", _FIRST))
