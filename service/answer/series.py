"""The logged metrics of a run as series to draw: common metrics, downsampled, with the failing step marked. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

from trainmedic.kb.model.evidence import Evidence, Row
from trainmedic.service.answer.schema import SeriesView

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
    rows: dict[str | None, list[Row]] = {}
    for row in evidence.rows:
        if not row.evaluation:
            rows.setdefault(row.span.attachment, []).append(row)
    series = []
    for name in SHOWN:
        for attachment, logged in rows.items():
            logged = [row for row in logged if name in row.metrics]
            if len(logged) >= FEWEST:
                series.append(_series(evidence, name, attachment, logged))
    return tuple(series[:MAX_SERIES])


def _series(evidence: Evidence, name: str, attachment: str | None, rows: Sequence[Row]) -> SeriesView:
    values = [row.metrics[name].value for row in rows]
    lines = [row.metrics[name].span.line for row in rows]
    unit, steps = _steps(rows, lines)
    marked = _marked(evidence, name, attachment, steps, values, unit)
    hidden = _hidden(rows) if name == "loss" else set()
    important = {steps.index(marked)} if marked is not None else set()
    important |= {min(hidden)} if hidden else set()
    kept = thinned(values, important, next(filter(_never_back, (steps, lines)), range(len(values))))
    return SeriesView(
        name=name,
        attachment=attachment,
        steps=tuple(steps[number] for number in kept),
        values=tuple(values[number] for number in kept),
        marked=marked,
        lines=tuple(lines[number] for number in kept),
        hidden=tuple(place for place, number in enumerate(kept) if number in hidden),
        unit=unit,
    )


def thinned(
    values: Sequence[float], important: Iterable[int] = (), at: Sequence[int] = (), limit: int = MAX_POINTS
) -> list[int]:
    """Positions of at most ``limit`` values with the same outline: the least and the greatest of each stretch.

    ``at`` is where each is on the axis, which is divided evenly however unevenly the values stand on it.

    The first, the last, the important ones and the first non-finite one are always kept.
    """
    if len(values) <= limit:
        return list(range(len(values)))
    broken = next((number for number, value in enumerate(values) if not math.isfinite(value)), None)
    numbers = {0, len(values) - 1} | ({broken} if broken is not None else set())
    numbers |= {number for number in important if 0 <= number < len(values)}
    count = max(1, (limit - len(numbers)) // 2)
    at = at or range(len(values))
    stretches: dict[int, list[int]] = {}
    for number, place in enumerate(at):
        stretches.setdefault((place - at[0]) * count // (at[-1] - at[0] + 1), []).append(number)
    for stretch in stretches.values():
        finite = [number for number in stretch if math.isfinite(values[number])]
        if finite:
            numbers.add(min(finite, key=lambda number: values[number]))
            numbers.add(max(finite, key=lambda number: values[number]))
        else:
            numbers.add(stretch[0])
    return sorted(numbers)


def _never_back(places: Sequence[int]) -> bool:
    return all(before <= after for before, after in pairwise(places))


def _steps(rows: Sequence[Row], lines: Sequence[int]) -> tuple[str, list[int]]:
    """The step of each row, with what it counts: lines or rows if any row states no step."""
    steps = [row.step for row in rows if row.step is not None]
    if len(steps) == len(rows):
        return "step", steps
    if all(before < after for before, after in pairwise(lines)):
        return "line", list(lines)
    return "row", list(range(1, len(rows) + 1))


def _hidden(rows: Sequence[Row]) -> set[int]:
    """Positions of the zeros that Hugging Face's log filter prints for a NaN loss: the gradient norm is NaN there.

    A zero without a gradient norm right behind such a row is one more of them.
    """
    hidden: set[int] = set()
    for number, row in enumerate(rows):
        norm = row.metrics.get("grad_norm")
        is_nan = math.isnan(norm.value) if norm is not None else number - 1 in hidden
        if row.metrics["loss"].value == 0 and is_nan:
            hidden.add(number)
    return hidden


def _marked(
    evidence: Evidence, name: str, attachment: str | None, steps: Sequence[int], values: Sequence[float], unit: str
) -> int | None:
    """The first step without a finite value; else the first at which this log shows a failure of this metric."""
    broken = next((step for step, value in zip(steps, values, strict=True) if not math.isfinite(value)), None)
    if broken is not None:
        return broken
    known = set(steps)
    stem = name.removeprefix("completion_").split("/")[0].removesuffix("s" if "/" in name else "")
    failures = [
        signal.span.line if unit == "line" else signal.step
        for signal in evidence.signals
        if signal.span.attachment == attachment and signal.kind.startswith(stem)
    ]
    return min((place for place in failures if place is not None and place in known), default=None)
