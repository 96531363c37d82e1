"""Rewards that do not differ within their groups in nearly all rows."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import NOT_SHOWN, Outcome, fires
from trainmedic.kb.parse.metrics import median, rounded_zero
from trainmedic.kb.rules.shared.log_series import logs, points, values

LEAST = 5
SHARE = 0.8
CUT = 0.9


def check(facts: Facts) -> Outcome:
    """Fires where reward_std is 0, or nearly all groups are flat, in four rows of five."""
    for rows in logs(facts):
        flat = points(rows, "frac_reward_zero_std")
        spread = [point for point in points(rows, "reward_std") if not rounded_zero(point.metric)]
        found = flat or spread
        hit = [point for point in found if (point.value >= 0.95 if flat else point.value == 0)]
        cut = values(points(rows, "clipped_ratio"))
        if len(found) < LEAST or len(hit) < SHARE * len(found) or (cut and median(cut) >= CUT):
            continue
        rewards = points(rows, "reward")
        level = median(values(rewards)) if rewards else float("nan")
        spans = [hit[0].span, hit[-1].span, *([rewards[-1].span] if rewards else [])]
        return fires(*spans, count=len(hit), all=len(found), name=hit[0].metric.name, level=level)
    return NOT_SHOWN
