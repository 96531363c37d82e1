"""A collective of one element timed out: that is a barrier, so one rank was busy with something else."""

from __future__ import annotations

import re

from kb.rules.facts import Facts
from kb.rules.log_text import first, told
from kb.rules.outcome import Outcome

_TEXTS = (("NumelIn=1,", re.compile(r"WorkNCCL\(SeqNum=\d+, OpType=(?:ALLREDUCE|BROADCAST), NumelIn=1,")),)


def check(facts: Facts) -> Outcome:
    """Fires on the first of these texts that a log holds."""
    for literal, pattern in _TEXTS:
        span = first(facts, literal, pattern)
        if span is not None:
            return told(span)
    return told(None)
