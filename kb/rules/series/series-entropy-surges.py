"""Entropy that multiplies late in a run, together with the gradient norm or a falling reward."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import NOT_SHOWN, Outcome, fires
from trainmedic.kb.parse.metrics import median
from trainmedic.kb.rules.shared.log_series import logs, points, values

LEAST = 15
SURGE, NORM, LOST = 3.0, 3.0, 0.7
LOW = 0.2
"""An entropy that only returns to this is no surge."""


def check(facts: Facts) -> Outcome:
    """Fires where the last entropies are three times the earlier ones and the run suffers."""
    for rows in logs(facts):
        entropies, norms, rewards = (points(rows, name) for name in ("entropy", "grad_norm", "reward"))
        if len(entropies) < LEAST or len(rewards) < LEAST:
            continue
        usual, end = median(values(entropies[:-3])), median(values(entropies[-3:]))
        if usual <= 0 or end < SURGE * usual or end < LOW:
            continue
        best = max(median(values(rewards[i : i + 3])) for i in range(len(rewards) - 2))
        lost = best > 0 and median(values(rewards[-3:])) < LOST * best
        wild = len(norms) >= LEAST and median(values(norms[-3:])) >= NORM * median(values(norms[:-3]))
        if lost or wild:
            spans = [entropies[-4].span, entropies[-1].span, rewards[-1].span]
            reward = median(values(rewards[-3:]))
            return fires(*spans, usual=usual, end=end, reward=reward, best=best)
    return NOT_SHOWN
