"""The logged metrics of a run as series to draw: common metrics, downsampled, with the failing step marked. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trainmedic.kb.model.evidence import Evidence, Row
from trainmedic.service.answer import SeriesView

SHOWN = (
    "loss",
    "grad_norm",
    "reward",
    "kl",
    "entropy",
    "rewards/margins",
    "rewards/chosen",
    "logps/chosen",
    "completion_length",
    "learning_rate",
)
"""Metrics worth a plot, the most informative first."""
MAX_SERIES = 8
MAX_POINTS = 240
FEWEST = 3
"""Fewer points than this make no curve."""


def series_views(evidence: Evidence) -> tuple[SeriesView, ...]:
    """One series for each metric of `SHOWN` and log, in that order, without evaluation rows."""
    rows = [row for row in evidence.rows if not row.evaluation]
    series = []
    for name in SHOWN:
        for attachment in dict.fromkeys(row.span.attachment for row in rows):
            points = _points([row for row in rows if row.span.attachment == attachment], name)
            if len(points) >= FEWEST:
                marked = _marked(evidence, name, attachment, points)
                thin = thinned(points, marked)
                steps, values = tuple(step for step, _ in thin), tuple(value for _, value in thin)
                series.append(SeriesView(name=name, attachment=attachment, steps=steps, values=values, marked=marked))
    return tuple(series[:MAX_SERIES])


def thinned(
    points: Sequence[tuple[int, float]], keep: int | None = None, limit: int = MAX_POINTS
) -> tuple[tuple[int, float], ...]:
    """At most ``limit`` points with the same outline: the minimum and maximum of each bucket.

    The first, the last, the one at step ``keep`` and the first non-finite one are always kept.
    """
    if len(points) <= limit:
        return tuple(points)
    broken = next((number for number, (_, value) in enumerate(points) if not math.isfinite(value)), None)
    numbers = {0, len(points) - 1} | ({broken} if broken is not None else set())
    numbers |= {number for number, (step, _) in enumerate(points) if step == keep}
    stretches = max(1, (limit - len(numbers)) // 2)
    for stretch in range(stretches):
        first, last = stretch * len(points) // stretches, (stretch + 1) * len(points) // stretches
        finite = [number for number in range(first, last) if math.isfinite(points[number][1])]
        if finite:
            numbers.add(min(finite, key=lambda number: points[number][1]))
            numbers.add(max(finite, key=lambda number: points[number][1]))
        else:
            numbers.add(first)
    return tuple(points[number] for number in sorted(numbers))


def _points(rows: Sequence[Row], name: str) -> list[tuple[int, float]]:
    """(step, value) of each row with the metric; row numbers replace the steps if any is missing."""
    values = [(row.step, row.metrics[name].value) for row in rows if name in row.metrics]
    if any(step is None for step, _ in values):
        return [(number, value) for number, (_, value) in enumerate(values, start=1)]
    return [(step or 0, value) for step, value in values]


def _marked(evidence: Evidence, name: str, attachment: str | None, points: Sequence[tuple[int, float]]) -> int | None:
    """The first step without a finite value; else the first at which this log shows a failure of this metric."""
    broken = next((step for step, value in points if not math.isfinite(value)), None)
    if broken is not None:
        return broken
    steps = {step for step, _ in points}
    stem = name.removeprefix("completion_").split("/")[0].removesuffix("s" if "/" in name else "")
    steps_with_failure = [
        signal.step
        for signal in evidence.signals
        if signal.step in steps and signal.span.attachment == attachment and signal.kind.startswith(stem)
    ]
    return min((step for step in steps_with_failure if step is not None), default=None)
