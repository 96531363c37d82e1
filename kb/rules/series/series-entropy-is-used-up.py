"""Entropy below a tenth of its beginning while the reward no longer rises and is not near its end."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import NOT_SHOWN, Outcome, fires
from trainmedic.kb.parse.metrics import median
from trainmedic.kb.rules.shared.log_series import logs, points, values

LEAST = 20
LEFT = 0.1
STILL = 0.02
"""Change of the reward from the middle to the last third, as a share of its best level."""


def check(facts: Facts) -> Outcome:
    """Fires where entropy is gone and the last two thirds brought no reward, on a release whose entropy is right."""
    if facts.version("verl", "==0.4.0").value is True:
        return NOT_SHOWN
    for rows in logs(facts):
        entropies, rewards = points(rows, "entropy"), points(rows, "reward")
        if len(entropies) < LEAST or len(rewards) < LEAST:
            continue
        begin, end = median(values(entropies[:3])), median(values(entropies[-3:]))
        third = len(rewards) // 3
        middle, last = median(values(rewards[third:-third])), median(values(rewards[-third:]))
        best = max(abs(middle), abs(last))
        if begin > 0 and 0 <= end < LEFT * begin and best > 0 and last - middle <= STILL * best:
            return fires(
                entropies[0].span,
                entropies[-1].span,
                rewards[-1].span,
                begin=begin,
                end=end,
                middle=middle,
                last=last,
                count=len(entropies),
            )
    return NOT_SHOWN
