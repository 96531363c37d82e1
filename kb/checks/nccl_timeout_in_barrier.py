"""A barrier timed out, and the paste shows that some rank was busy with something long."""

from __future__ import annotations

from trainmedic.kb.checks.single_rank_work import single_rank_work
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.log_text import first
from trainmedic.kb.engine.outcome import CLEAR, Outcome, fires
from trainmedic.kb.lazy import regex

_BARRIER = regex(r"WorkNCCL\(SeqNum=\d+, OpType=(?:ALLREDUCE|BROADCAST), NumelIn=1,")


def check(facts: Facts) -> Outcome:
    """Fires where both are in the paste, or where the barrier is that of work that one process does first."""
    for trace in facts.evidence.tracebacks:
        if "timeout" in trace.message.lower() and any(frame.endswith(" main_process_first") for frame in trace.frames):
            return fires(*trace.places)
    barrier = first(facts.evidence, "NumelIn=1,", _BARRIER)
    work = single_rank_work(facts.evidence)
    if barrier is None or work is None:
        return CLEAR
    return fires(barrier, work)
