"""A training loss that is level within epochs and drops where one ends."""

from __future__ import annotations

from itertools import pairwise

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import NOT_SHOWN, Outcome, fires
from trainmedic.kb.parse.metrics import is_rl, median
from trainmedic.kb.rules.shared.log_series import Point, logs, points, values

LEAST = 3
DROP = 0.8
LEVEL = 0.9
"""Within an epoch the later half keeps at least this share of the earlier one; across the border it loses a fifth."""
MANY, SPREAD = 6, 1.1
"""With fewer rows than that all of them must lie this close together."""


def check(facts: Facts) -> Outcome:
    """Fires where, at the first border between two logged epochs, the loss drops though both sides are level."""
    for rows in logs(facts):
        losses = [point for point in points(rows, "loss") if "epoch" in point.row.metrics]
        if any(is_rl(row) for row in rows) or any("rewards/margins" in row.metrics for row in rows):
            continue
        epochs = _by_epoch(losses)
        for before, after in pairwise(epochs):
            if len(before) < LEAST or len(after) < LEAST:
                continue
            low, high = median(values(after[:LEAST])), median(values(before[-LEAST:]))
            if low <= DROP * high and _level(before) and _level(after):
                return fires(before[-1].span, after[0].span, high=high, low=low, epoch=int(_epoch(after[0])))
    return NOT_SHOWN


def _epoch(point: Point) -> float:
    """The epoch a row belongs to: a row at exactly 1.0 closes the first."""
    value = point.row.metrics["epoch"].value
    return value - 1e-9


def _by_epoch(losses: list[Point]) -> list[list[Point]]:
    parts: list[list[Point]] = []
    for point in losses:
        if not parts or int(_epoch(parts[-1][-1])) != int(_epoch(point)):
            parts.append([])
        parts[-1].append(point)
    return parts


def _level(part: list[Point]) -> bool:
    """Whether the later half of an epoch is about as high as the earlier: a steady fall is no stair."""
    half = len(part) // 2
    earlier, later = median(values(part[:half])), median(values(part[half:]))
    close = len(part) >= MANY or max(values(part)) <= SPREAD * min(values(part))
    return later >= LEVEL * earlier and close
