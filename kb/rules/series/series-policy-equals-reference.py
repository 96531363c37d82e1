"""Implicit rewards, or the KL, of exactly 0 in row after row: no update has reached the policy."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import NOT_SHOWN, Outcome, fires
from trainmedic.kb.model.evidence import Row
from trainmedic.kb.parse.metrics import median, rounded_zero
from trainmedic.kb.rules.shared.log_series import Point, logs, points, values

LEAST = 4
"""The first row or two of a run may well be 0: no update has been made then."""


def check(facts: Facts) -> Outcome:
    """Fires where rewards or KL are exactly 0 in all of four or more rows at a learning rate above 0."""
    for rows in logs(facts):
        rates = values(points(rows, "learning_rate"))
        if not rates or median(rates) <= 0:
            continue
        chosen, rejected, kl = (
            points(rows, name, finite=False) for name in ("rewards/chosen", "rewards/rejected", "kl")
        )
        if _zero(chosen) and _zero(rejected):
            return fires(chosen[0].span, chosen[-1].span, name="rewards/chosen", count=len(chosen), rate=median(rates))
        if _zero(kl) and _differs(rows):
            return fires(kl[0].span, kl[-1].span, name="kl", count=len(kl), rate=median(rates))
    return NOT_SHOWN


def _zero(found: list[Point]) -> bool:
    return len(found) >= LEAST and all(point.value == 0 and not rounded_zero(point.metric) for point in found)


def _differs(rows: list[Row]) -> bool:
    """Whether there is something to learn from: rewards that differ within groups. KTO's kl, clamped at 0, has none."""
    spread = values(points(rows, "reward_std"))
    return bool(spread) and median(spread) > 0
