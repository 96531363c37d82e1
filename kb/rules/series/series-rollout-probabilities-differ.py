"""The engine that samples and the trainer that scores give the same tokens different probabilities."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import NOT_SHOWN, Outcome, fires
from trainmedic.kb.parse.metrics import median
from trainmedic.kb.rules.shared.log_series import logs, points, values

LEAST = 3
MEAN = 0.01
"""verl's FAQ: below 0.005 is ordinary, above 0.01 points to the engine."""
_NAMES = ("training/rollout_probs_diff_mean", "rollout_probs_diff_mean")


def check(facts: Facts) -> Outcome:
    """Fires where the median of the logged mean differences is above 0.01."""
    for rows in logs(facts):
        for name in _NAMES:
            found = points(rows, name)
            if len(found) >= LEAST and median(values(found)) > MEAN:
                return fires(found[0].span, found[-1].span, count=len(found), begin=found[0].value, end=found[-1].value)
    return NOT_SHOWN
