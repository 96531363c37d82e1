"""A logged loss that is a whole number of accumulation steps too large."""

from __future__ import annotations

import math

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import NOT_SHOWN, Outcome, fires
from trainmedic.kb.model.evidence import Row
from trainmedic.kb.parse.metrics import median
from trainmedic.kb.rules.shared.log_series import configured, early, evaluations, logs, points, values

LEAST = 4
"""With fewer accumulation steps the ratio could be the data's."""
START, RATIO = 0.03, 0.1
_STARTS = {"dpo": math.log(2), "reward": math.log(2), "kto": 0.5}
"""The loss before anything is learned."""


def check(facts: Facts) -> Outcome:
    """Fires where a preference loss starts that many times too high, or training is that many times evaluation."""
    steps = configured(facts, "gradient_accumulation")
    if steps is None or steps < LEAST:
        return NOT_SHOWN
    evaluated = values(evaluations(facts))
    for rows in logs(facts):
        losses = points(rows, "loss")
        if not losses:
            continue
        first = losses[0]
        start = _STARTS.get(str(facts.name("algorithm").value))
        if start is not None and _starts_there(rows, first.value, start * steps):
            by = f"{start:.3g}"
            return fires(first.span, loss=first.value, steps=int(steps), true=first.value / steps, by_en=by, by_zh=by)
        level = median(values(losses))
        if evaluated and all(abs(level / value / steps - 1) <= RATIO for value in evaluated if value > 0):
            return fires(
                losses[-1].span,
                evaluations(facts)[-1].span,
                loss=level,
                steps=int(steps),
                true=level / steps,
                by_en="eval_loss",
                by_zh="eval_loss",
            )
    return NOT_SHOWN


def _starts_there(rows: list[Row], loss: float, expected: float) -> bool:
    return early(rows) and "rewards/margins" in rows[0].metrics and abs(loss / expected - 1) <= START
