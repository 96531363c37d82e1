"""A supervised loss that is exactly 0 from the first row on: no label is left."""

from __future__ import annotations

import math

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import NOT_SHOWN, Outcome, fires
from trainmedic.kb.parse.metrics import is_rl
from trainmedic.kb.rules.shared.log_series import early, logs, points, values

LEAST = 2


def check(facts: Facts) -> Outcome:
    """Fires where every loss is 0, the norms are finite, and the log begins at the start or the norms are 0 too."""
    for rows in logs(facts):
        losses, norms = points(rows, "loss"), values(points(rows, "grad_norm", finite=False))
        if len(losses) < LEAST or any(point.value != 0 for point in losses) or any(is_rl(row) for row in rows):
            continue
        if any("rewards/margins" in row.metrics for row in rows):
            continue
        if norms and all(math.isfinite(norm) for norm in norms) and (early(rows) or not any(norms)):
            return fires(losses[0].span, losses[-1].span, count=len(losses), norm=norms[-1])
    return NOT_SHOWN
