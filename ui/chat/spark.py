"""A logged metric as a small inline SVG: no script, colours from the page, text outside the picture. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainmedic.service.answer import SeriesView

WIDTH, HEIGHT, EDGE = 240.0, 64.0, 4.0
TABLE_ROWS = 20
"""Values listed around the mark."""
Point = tuple[float, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spark:
    """A chart for the template. Coordinates are those of a ``WIDTH`` × ``HEIGHT`` picture; ``label`` describes it.

    ``paths`` are the finite ranges, ``dots`` single finite points, ``broken`` the position of the first non-finite
    value, ``mark`` that of the detected step.
    """

    name: str
    attachment: str | None
    label: str
    paths: tuple[str, ...]
    dots: tuple[tuple[str, str], ...]
    mark: str | None
    marked: int | None
    broken: str | None
    broken_step: int | None
    low: str
    high: str
    first: int
    last: int
    table: tuple[tuple[int, str, bool], ...]


def spark(series: SeriesView, words: Mapping[str, Any]) -> Spark | None:
    """The chart of one series; None if it is empty."""
    logged = list(zip(series.steps, series.values, strict=True))
    points = [(float(step), _finite(value)) for step, value in logged]
    if not points:
        return None
    finite = [value for _, value in points if value is not None]
    low, high = (min(finite), max(finite)) if finite else (0.0, 0.0)
    first, last = points[0][0], points[-1][0]
    broken = next((step for step, value in points if value is None), None)
    marked = series.marked

    def x(step: float) -> float:
        return EDGE + (WIDTH - 2 * EDGE) * ((step - first) / (last - first) if last > first else 0.5)

    def y(value: float) -> float:
        return EDGE + (HEIGHT - 2 * EDGE) * (1 - (value - low) / (high - low) if high > low else 0.5)

    runs = _runs(points)
    values = {"name": series.name, "count": len(points), "first": f"{first:g}", "last": f"{last:g}"}
    label = words["series_steady"].format(**values, low=number(low), high=number(high))
    if broken is not None:
        label += words["series_nan"].format(step=f"{broken:g}")
    elif marked is not None:
        label += words["series_marked"].format(step=marked)
    return Spark(
        name=series.name,
        attachment=series.attachment,
        label=label,
        paths=tuple(_path([(x(step), y(value)) for step, value in run]) for run in runs if len(run) > 1),
        dots=tuple((f"{x(step):.1f}", f"{y(value):.1f}") for run in runs if len(run) == 1 for step, value in run),
        mark=f"{x(float(marked)):.1f}" if marked is not None else None,
        marked=marked,
        broken=f"{x(broken):.1f}" if broken is not None else None,
        broken_step=int(broken) if broken is not None else None,
        low=number(low),
        high=number(high),
        first=int(first),
        last=int(last),
        table=_table(logged, marked if marked is not None else broken),
    )


def number(value: float) -> str:
    return f"{value:.4g}"


def _finite(value: object) -> float | None:
    """The value, or None unless it is a finite number (others are strings on the wire)."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _runs(points: Sequence[Point]) -> list[list[tuple[float, float]]]:
    """The finite points, split at those that are not."""
    runs: list[list[tuple[float, float]]] = [[]]
    for step, value in points:
        if value is None:
            runs.append([])
        else:
            runs[-1].append((step, value))
    return [run for run in runs if run]


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _table(points: Sequence[tuple[int, Any]], around: float | None) -> tuple[tuple[int, str, bool], ...]:
    """The values around the mark, or the last ones."""
    steps = [point[0] for point in points]
    centre = next((index for index, step in enumerate(steps) if around is not None and step >= around), len(steps))
    start = max(0, min(centre - TABLE_ROWS // 2, len(steps) - TABLE_ROWS))
    rows = points[start : start + TABLE_ROWS]
    return tuple(
        (int(step), number(value) if isinstance(value, int | float) else str(value), step == around)
        for step, value in rows
    )
