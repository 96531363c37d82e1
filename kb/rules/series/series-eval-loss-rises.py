"""The evaluation loss left its lowest value behind while the training loss went on falling."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import NOT_SHOWN, Outcome, fires
from trainmedic.kb.rules.shared.log_series import ends, evaluations, logs, points, values

LEAST = 4
RISE, FALL = 1.1, 0.85


def check(facts: Facts) -> Outcome:
    """Fires where two evaluations running lie a tenth above the lowest, and training fell by 15 % over the log."""
    evaluated = evaluations(facts)
    if len(evaluated) < LEAST:
        return NOT_SHOWN
    lowest = min(evaluated, key=lambda point: point.value)
    last = evaluated[-1]
    if lowest.value <= 0 or any(point.value < RISE * lowest.value for point in evaluated[-2:]):
        return NOT_SHOWN
    for rows in logs(facts):
        losses = values(points(rows, "loss"))
        if len(losses) < LEAST:
            continue
        begin, end = ends(losses)
        if end <= FALL * begin:
            return fires(
                lowest.span,
                last.span,
                lowest=lowest.value,
                last=last.value,
                begin=begin,
                end=end,
                count=len(evaluated),
            )
    return NOT_SHOWN
