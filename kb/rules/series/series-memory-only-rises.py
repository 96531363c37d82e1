"""A logged memory that is a running maximum and has grown."""

from __future__ import annotations

from itertools import pairwise

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import NOT_SHOWN, Outcome, fires
from trainmedic.kb.rules.shared.log_series import logs, points

LEAST = 5
GROWTH = 1.1
NAMES = ("memory(GiB)", "perf/max_memory_reserved_gb", "perf/max_memory_allocated_gb")


def check(facts: Facts) -> Outcome:
    """Fires where it never falls, ends a tenth above its beginning, and nothing ran out of memory."""
    if facts.evidence.has("oom"):
        return NOT_SHOWN
    for rows in logs(facts):
        for name in NAMES:
            found = points(rows, name)
            if len(found) < LEAST or any(a.value > b.value for a, b in pairwise(found)):
                continue
            if found[-1].value >= GROWTH * found[0].value > 0:
                return fires(found[0].span, found[-1].span, name=name, begin=found[0].value, end=found[-1].value)
    return NOT_SHOWN
