"""Gradient norms that grow row by row before the log stops being finite: a real explosion."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import NOT_SHOWN, Outcome, fires
from trainmedic.kb.parse.metrics import median
from trainmedic.kb.rules.shared.log_series import break_of, logs, points, values

LEAST = 6
GROWTH = 10.0
"""The largest of the last three norms against the median of those before them."""


def check(facts: Facts) -> Outcome:
    """Fires where the norms just before the break are ten times the earlier ones, and above 1."""
    for rows in logs(facts):
        broken = break_of(rows)
        norms = points(broken.before, "grad_norm") if broken is not None else []
        if broken is None or len(norms) < LEAST:
            continue
        usual, top = median(values(norms[:-3])), max(norms[-3:], key=lambda point: point.value)
        if top.value >= GROWTH * usual and top.value > 1:
            en, zh = broken.point.where
            return fires(
                top.span,
                broken.point.span,
                metric=broken.point.metric.name,
                usual=usual,
                top=top.value,
                where_en=en,
                where_zh=zh,
            )
    return NOT_SHOWN
