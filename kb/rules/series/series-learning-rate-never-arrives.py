"""A learning rate that is 0 over many rows, or still below half of its target when the run ends."""

from __future__ import annotations

from itertools import pairwise

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import NOT_SHOWN, Outcome, fires
from trainmedic.kb.model.evidence import Row
from trainmedic.kb.parse.metrics import rounded_zero
from trainmedic.kb.rules.shared.log_series import Point, configured, logs, points, values

LEAST, LEAST_RISING = 5, 3
TAIL = 0.2
"""Zeros at the end count from this share of the rows on: a schedule may well end in one or two."""
REACHED, OVER = 0.5, 0.98


def check(facts: Facts) -> Outcome:
    """Fires on zeros throughout, on a long tail of zeros, and on a warm-up that outlasts a finished run."""
    for rows in logs(facts):
        rates = points(rows, "learning_rate")
        if len(rates) < LEAST_RISING or any(rounded_zero(point.metric) for point in rates):
            continue
        zeros = _tail(rates)
        if zeros >= LEAST and (zeros == len(rates) or zeros >= TAIL * len(rates)) and not _scale_overflows(facts):
            return _zero(rates, zeros)
        target, top = configured(facts, "learning_rate"), max(values(rates))
        rising = all(a.value <= b.value for a, b in pairwise(rates))
        if target is not None and rising and 0 < top < REACHED * target and _finished(facts, rows):
            return fires(
                rates[0].span,
                rates[-1].span,
                what_en=f"rises to the last row and reaches {top:.3g} of {target:.3g}",
                what_zh=f"到最后一行仍在上升，只到 {top:.3g}，目标是 {target:.3g}",
            )
    return NOT_SHOWN


def _zero(rates: list[Point], zeros: int) -> Outcome:
    first = rates[-zeros]
    en, zh = first.where
    if zeros == len(rates):
        what = f"is exactly 0 in all {zeros} rows", f"在全部 {zeros} 行里恰好为 0"
    else:
        what = (
            f"is exactly 0 from {en} on, in {zeros} of {len(rates)} rows",
            f"从{zh}起恰好为 0，{len(rates)} 行中占 {zeros} 行",
        )
    return fires(first.span, rates[-1].span, what_en=what[0], what_zh=what[1])


def _tail(rates: list[Point]) -> int:
    """How many of the last rows are 0."""
    count = 0
    for point in reversed(rates):
        if point.value != 0:
            break
        count += 1
    return count


def _scale_overflows(facts: Facts) -> bool:
    """Whether DeepSpeed says that it skips steps: the Trainer logs 0 then, and the cause has its own rule."""
    return facts.evidence.has("loss_scale_collapse") or facts.evidence.has("grad_norm_nan")


def _finished(facts: Facts, rows: list[Row]) -> bool:
    """Whether the summary row of a finished run is there, or the configured epochs or steps are over."""
    if any("train_loss" in row.metrics or "train_runtime" in row.metrics for row in facts.evidence.rows):
        return True
    epochs, steps, last = configured(facts, "epochs"), configured(facts, "max_steps"), rows[-1]
    epoch = last.metrics.get("epoch")
    if epochs is not None and epoch is not None and epochs > 0:
        return epoch.value >= OVER * epochs
    return steps is not None and steps > 0 and last.step is not None and last.step >= OVER * steps
