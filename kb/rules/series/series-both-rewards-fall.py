"""Both implicit rewards of a DPO run fall while their distance grows."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import NOT_SHOWN, Outcome, fires
from trainmedic.kb.rules.shared.log_series import ends, logs, points, values

LEAST = 8
FALL, GROWTH, ACCURATE = 0.1, 0.05, 0.55
DEEP = -8.0
"""A chosen reward below this is left to somebody who reads samples; the bound is ours."""
_PAIRS = ("dpo", "ipo")


def check(facts: Facts) -> Outcome:
    """Fires where margins and accuracies say that the preference is learned and every number is finite."""
    algorithm = facts.name("algorithm").value
    if isinstance(algorithm, str) and algorithm not in _PAIRS:
        return NOT_SHOWN
    for rows in logs(facts):
        chosen, rejected = points(rows, "rewards/chosen", finite=False), points(rows, "rewards/rejected", finite=False)
        margins, accuracies = points(rows, "rewards/margins"), points(rows, "rewards/accuracies")
        if min(len(chosen), len(rejected), len(margins), len(accuracies)) < LEAST:
            continue
        if not all(abs(point.value) < float("inf") for point in (*chosen, *rejected)):
            continue
        begin, end = ends(values(chosen))
        other_begin, other_end = ends(values(rejected))
        start, last = ends(values(margins))
        falls = end < min(begin - FALL, 0) and other_end < min(other_begin - FALL, 0)
        if falls and end > DEEP and last > start + GROWTH and ends(values(accuracies))[1] > ACCURATE:
            return fires(
                chosen[-1].span,
                rejected[-1].span,
                margins[-1].span,
                chosen=chosen[-1].value,
                rejected=rejected[-1].value,
                margin=margins[-1].value,
                start=start,
                last=last,
            )
    return NOT_SHOWN
