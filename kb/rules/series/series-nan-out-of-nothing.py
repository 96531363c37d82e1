"""From ordinary rows to values that are not finite, with no growth in between."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import NOT_SHOWN, Outcome, fires
from trainmedic.kb.parse.metrics import median
from trainmedic.kb.rules.shared.log_series import break_of, logs, points, values

LEAST = 5
CALM = 3.0
"""None of the last three norms or losses may exceed this many times the median of the rows before them."""


def check(facts: Facts) -> Outcome:
    """Fires where loss and norm were ordinary up to the row before the break."""
    for rows in logs(facts):
        broken = break_of(rows)
        if broken is None or len(broken.before) < LEAST:
            continue
        losses, norms = points(broken.before, "loss"), points(broken.before, "grad_norm")
        if len(losses) < LEAST or len(norms) < LEAST:
            continue
        if any(max(values(part[-3:])) > CALM * max(median(values(part)), 1e-3) for part in (losses, norms)):
            continue
        en, zh = broken.point.where
        return fires(
            norms[-1].span,
            broken.point.span,
            metric=broken.point.metric.name,
            value=broken.point.value,
            count=len(losses),
            last=norms[-1].value,
            where_en=en,
            where_zh=zh,
        )
    return NOT_SHOWN
