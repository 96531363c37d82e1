"""A GRPO loss near 0 next to a gradient that is not."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import NOT_SHOWN, Outcome, fires
from trainmedic.kb.parse.metrics import median
from trainmedic.kb.rules.shared.log_series import logs, points, values

LEAST = 3
SMALL, GRADIENT = 0.01, 1e-3
_ALGORITHMS = ("grpo", "rloo", "dapo", "gspo", "dr_grpo")


def check(facts: Facts) -> Outcome:
    """Fires where the loss is small, the norms are finite and above 0, and rewards differ within groups."""
    algorithm = facts.name("algorithm").value
    if isinstance(algorithm, str) and algorithm not in _ALGORITHMS:
        return NOT_SHOWN
    for rows in logs(facts):
        losses, norms = points(rows, "loss"), points(rows, "grad_norm")
        spread = points(rows, "reward_std")
        if min(len(losses), len(norms), len(spread)) < LEAST or len(norms) < len(
            points(rows, "grad_norm", finite=False)
        ):
            continue
        level, norm = median([abs(value) for value in values(losses)]), median(values(norms))
        if level < SMALL and norm > GRADIENT and median(values(spread)) > 0:
            return fires(losses[-1].span, norms[-1].span, level=level, norm=norm, count=len(losses))
    return NOT_SHOWN
