"""A KL of on-policy training that stays well below 0."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import NOT_SHOWN, Outcome, fires
from trainmedic.kb.parse.metrics import median
from trainmedic.kb.rules.shared.log_series import logs, points, values

LEAST = 5
BELOW = -1.0
"""TRL's own warning began here; a sum over tokens near 0 scatters around it."""
_ON_POLICY = ("ppo", "reinforce", "grpo", "rloo")


def check(facts: Facts) -> Outcome:
    """Fires where the median of the last rows is below -1 and none of them is above 0."""
    algorithm = facts.name("algorithm").value
    if isinstance(algorithm, str) and algorithm not in _ON_POLICY:
        return NOT_SHOWN
    for rows in logs(facts):
        if any("rewards/chosen" in row.metrics for row in rows):
            continue
        found = points(rows, "kl")[-LEAST:]
        if len(found) == LEAST and median(values(found)) < BELOW and max(values(found)) <= 0:
            return fires(found[0].span, found[-1].span, begin=found[0].value, end=found[-1].value)
    return NOT_SHOWN
