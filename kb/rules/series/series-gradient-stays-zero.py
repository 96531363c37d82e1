"""A gradient norm of exactly 0 in a supervised or preference run whose loss does not fall."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import NOT_SHOWN, Outcome, fires
from trainmedic.kb.parse.metrics import is_rl, rounded_zero
from trainmedic.kb.rules.shared.log_series import ends, logs, points, values

LEAST = 5
FELL = 0.97
"""A loss that ends below this share of its beginning falls, whatever the printed norm says."""


def check(facts: Facts) -> Outcome:
    """Fires where all norms are 0, the loss is not, and it stays where it was."""
    for rows in logs(facts):
        norms, losses = points(rows, "grad_norm", finite=False), points(rows, "loss")
        if len(norms) < LEAST or len(losses) < LEAST or any(is_rl(row) for row in rows):
            continue
        if any(point.value != 0 or rounded_zero(point.metric) for point in norms):
            continue
        rewards = points(rows, "rewards/chosen")
        if rewards and not any(values(rewards)):
            continue  # policy and reference are the same model: another rule says more
        begin, end = ends(values(losses))
        if begin > 0 and end >= FELL * begin and _steps_are_made(values(points(rows, "learning_rate"))):
            return fires(norms[0].span, norms[-1].span, count=len(norms), begin=begin, end=end)
    return NOT_SHOWN


def _steps_are_made(rates: list[float]) -> bool:
    return not rates or max(rates) > 0
