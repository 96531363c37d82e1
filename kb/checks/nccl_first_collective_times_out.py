"""The first collective of a job timed out although no rank shows other work, nor an exception."""

from __future__ import annotations

from trainmedic.kb.checks.single_rank_work import single_rank_work
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.log_text import first
from trainmedic.kb.engine.outcome import CLEAR, NOT_SHOWN, Outcome, fires
from trainmedic.kb.lazy import regex

_FIRST = regex(r"WorkNCCL\(SeqNum=1, OpType=\w+")


def check(facts: Facts) -> Outcome:
    """Fires if nothing else explains why a rank did not come. Rows show that earlier groups did communicate."""
    busy = single_rank_work(facts.evidence) is not None
    failed = any("DistBackendError" not in trace.exception for trace in facts.evidence.tracebacks)
    trained = bool(facts.evidence.rows)
    if busy or failed or trained:
        return CLEAR
    span = first(facts.evidence, "SeqNum=1,", _FIRST)
    return NOT_SHOWN if span is None else fires(span)
