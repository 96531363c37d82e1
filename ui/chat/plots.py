"""Logged metrics as inline SVG with a shared crosshair: colours from the page, text outside the picture. Pure.

Drawn here instead of by a charting library: the picture is there without a script, follows the page's theme, and its
numbers can be read by assistive technology. uPlot, the smallest candidate, would add 50 kB and a canvas that has none
of this.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from trainmedic.service.answer.schema import SeriesView

WIDTH, HEIGHT = 1000.0, 100.0
SIDE, EDGE = 6.0, 7.0
NARROWEST = 4.0
"""Width of a band around a single point."""
TABLE_ROWS = 20
"""Values listed around the mark."""
COLUMN = 10.0
"""Width of the columns for each of which the least and the greatest value are drawn where points are dense."""
DENSE = 1.8
"""Points a column from which on a line would be a solid band."""
FEWEST_COLUMNS = 8
Words = Mapping[str, Any]
Point = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The finite ranges of a series as paths, its single finite points as dots, and as areas what ranges cover whose
    points are too dense for a line."""

    paths: tuple[str, ...]
    dots: tuple[str, ...]
    areas: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """A range without a value. ``kind``: nan, inf, filtered (a 0 that stands for NaN)."""

    kind: str
    x: float
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One series in a plot; ``side`` is good or bad in a comparison. ``log`` is None if a value is not positive.

    ``at``, ``places`` and ``values`` are what the crosshair reads, separated by ``|``.
    """

    side: str
    linear: Curve
    log: Curve | None
    at: str
    places: str
    values: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Onset:
    """Where a failure shows: ``kind`` is that of a `Band`, or mark. ``line`` is its line in the log, if known."""

    kind: str
    step: int
    line: int | None
    x: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """One metric for the template, in a ``WIDTH`` × ``HEIGHT`` picture; ``label`` describes it.

    ``low`` and ``high`` are empty if no value is finite. ``table`` has (step, value, is the onset).
    """

    name: str
    label: str
    traces: tuple[Trace, ...]
    bands: tuple[Band, ...]
    onset: Onset | None
    low: str
    high: str
    table: tuple[tuple[int, str, bool], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """First, onset and last value of a series, each with its step, as text."""

    name: str
    side: str
    first: str
    onset: str
    last: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlots:
    """The plots over one axis: those of one log, or of two runs. ``unit`` of the axis, ``counts`` of the steps: step,
    line or row. ``count`` is the number of places that the crosshair stops at.
    """

    attachment: str | None
    unit: str
    counts: str
    first: int
    last: int
    count: int
    plots: tuple[Plot, ...]
    kinds: tuple[str, ...]
    summary: tuple[Summary, ...]

    @property
    def onset_lines(self) -> tuple[int, ...]:
        lines = {plot.onset.line for plot in self.plots if plot.onset is not None}
        return tuple(sorted(line for line in lines if line is not None))


def run_plots(series: Sequence[SeriesView], words: Words) -> tuple[RunPlots, ...]:
    """The plots of each log. The axis is the log's lines where its steps go back, as those of a resumed run do."""
    by_log: dict[str | None, list[SeriesView]] = {}
    for view in series:
        if view.steps:
            by_log.setdefault(view.attachment, []).append(view)
    return tuple(_run(log, [[("", view)] for view in views], words) for log, views in by_log.items())


def overlaid(good: Sequence[SeriesView], bad: Sequence[SeriesView], words: Words) -> RunPlots | None:
    """The metrics that both runs have, one over the other; None if there is none."""
    before = {view.name: view for view in reversed(good) if view.steps}
    after = {view.name: view for view in reversed(bad) if view.steps}
    pairs = [[("good", before[name]), ("bad", after[name])] for name in reversed(after) if name in before]
    return _run(None, pairs, words) if pairs else None


def number(value: float) -> str:
    return f"{value:.4g}"


def _run(log: str | None, plots: Sequence[Sequence[tuple[str, SeriesView]]], words: Words) -> RunPlots:
    views = [view for traces in plots for _, view in traces]
    alone = len(views) == len(plots)
    goes_back = any(second < first for view in views for first, second in pairwise(view.steps))
    unit = "line" if goes_back and alone and all(view.lines for view in views) else views[0].unit
    positions = sorted({at for view in views for at in _positions(view, unit)})
    axis = _Axis(unit, positions[0], positions[-1])
    drawn = tuple(_plot(traces, axis, words) for traces in plots)
    kinds = {band.kind for plot in drawn for band in plot.bands}
    return RunPlots(
        attachment=log,
        unit=unit,
        counts=views[0].unit,
        first=positions[0],
        last=positions[-1],
        count=len(positions),
        plots=drawn,
        kinds=tuple(kind for kind in ("nan", "inf", "filtered") if kind in kinds),
        summary=tuple(_summary(view, side, words) for traces in plots for side, view in traces),
    )


def _positions(view: SeriesView, unit: str) -> tuple[int, ...]:
    return view.lines if unit == "line" else view.steps


@dataclass(frozen=True, slots=True)
class _Axis:
    unit: str
    first: int
    last: int

    def x(self, position: float) -> float:
        share = (position - self.first) / (self.last - self.first) if self.last > self.first else 0.5
        return SIDE + (WIDTH - 2 * SIDE) * share


def _plot(traces: Sequence[tuple[str, SeriesView]], axis: _Axis, words: Words) -> Plot:
    name, view = traces[-1][1].name, traces[-1][1]
    readable = [value for _, series in traces for value in _readable(series) if value is not None]
    low, high = (min(readable), max(readable)) if readable else (0.0, 0.0)
    onset = _onset(view, axis)
    return Plot(
        name=name,
        label=_label(view, low if readable else None, high, onset, axis, words),
        traces=tuple(_trace(side, series, low, high, axis, words) for side, series in traces),
        bands=tuple(band for _, series in traces for band in _bands(series, axis)),
        onset=onset,
        low=number(low) if readable else "",
        high=number(high) if readable else "",
        table=_table(view, onset, words),
    )


def _trace(side: str, view: SeriesView, low: float, high: float, axis: _Axis, words: Words) -> Trace:
    values = _readable(view)
    xs = [axis.x(position) for position in _positions(view, axis.unit)]
    logarithms = [None if value is None else math.log10(value) for value in values] if low > 0 else None
    return Trace(
        side=side,
        linear=_curve(xs, values, low, high),
        log=_curve(xs, logarithms, math.log10(low), math.log10(high)) if logarithms is not None else None,
        at="|".join(map(str, _positions(view, axis.unit))),
        # Two runs have no line in common.
        places="|".join(f"{step}:{line}" for step, line in zip(view.steps, view.lines, strict=True))
        if view.lines and not side
        else "|".join(map(str, view.steps)),
        values="|".join(_text(view, place, words) for place in range(len(view.steps))),
    )


def _readable(view: SeriesView) -> list[float | None]:
    """The values; None where one is not finite or was printed for a NaN."""
    return [None if kind else float(value) for kind, value in zip(_kinds(view), view.values, strict=True)]


def _kinds(view: SeriesView) -> list[str]:
    """What keeps each point from being drawn, as a kind of `Band`; empty if nothing does."""
    hidden = set(view.hidden)
    # Numbers that are not finite are strings in answers of the history.
    numbers = [float(value) for value in view.values]
    return [
        "filtered" if place in hidden else "nan" if math.isnan(value) else "inf" if math.isinf(value) else ""
        for place, value in enumerate(numbers)
    ]


def _curve(xs: Sequence[float], values: Sequence[float | None], low: float, high: float) -> Curve:
    ranges: list[list[Point]] = [[]]
    for x, value in zip(xs, values, strict=True):
        if value is None:
            ranges.append([])
        else:
            # Halves, so that the distance of the largest floats is finite.
            share = (value / 2 - low / 2) / (high / 2 - low / 2) if high / 2 > low / 2 else 0.5
            ranges[-1].append((x, EDGE + (HEIGHT - 2 * EDGE) * (1 - share)))
    outlines = [_outline(points) for points in ranges if len(points) > 1]
    return Curve(
        paths=tuple(_path(line) for line, _ in outlines),
        areas=tuple(f"{_path(area)}Z" for _, area in outlines if area),
        dots=tuple(f"M{x:.0f} {y:.1f}h.01" for points in ranges if len(points) == 1 for x, y in points),
    )


def _path(points: Iterable[Point]) -> str:
    return "M" + "L".join(f"{x:.0f} {y:.1f}" for x, y in points)


def _outline(points: Sequence[Point]) -> tuple[Sequence[Point], Sequence[Point]]:
    """A line through points, and the area around it that they cover if they stand too close to tell them apart."""
    columns: dict[int, list[Point]] = {}
    for x, y in points:
        columns.setdefault(int(x // COLUMN), []).append((x, y))
    if len(points) < DENSE * len(columns) or len(columns) < FEWEST_COLUMNS:
        return points, ()
    upper = [(column[len(column) // 2][0], min(y for _, y in column)) for column in columns.values()]
    lower = [(column[len(column) // 2][0], max(y for _, y in column)) for column in columns.values()]
    line = [(x, (top + bottom) / 2) for (x, top), (_, bottom) in zip(upper, lower, strict=True)]
    return line, (*upper, *reversed(lower))


def _bands(view: SeriesView, axis: _Axis) -> Iterator[Band]:
    xs = [axis.x(position) for position in _positions(view, axis.unit)]
    kinds = _kinds(view)
    start = 0
    for place, kind in enumerate(kinds):
        if place + 1 == len(kinds) or kinds[place + 1] != kind:
            if kind:
                yield _band(kind, xs[start], xs[place])
            start = place + 1


def _band(kind: str, first: float, last: float) -> Band:
    width = max(NARROWEST, last - first)
    return Band(kind=kind, x=min(first, WIDTH - width), width=width)


def _onset_place(view: SeriesView) -> int | None:
    """The first point without a value; else the one at the marked step."""
    for place, kind in enumerate(_kinds(view)):
        if kind:
            return place
    return view.steps.index(view.marked) if view.marked is not None and view.marked in view.steps else None


def _onset(view: SeriesView, axis: _Axis) -> Onset | None:
    place = _onset_place(view)
    if place is None:
        return None
    return Onset(
        kind=_kinds(view)[place] or "mark",
        step=view.steps[place],
        line=view.lines[place] if view.lines else None,
        x=axis.x(_positions(view, axis.unit)[place]),
    )


def _label(view: SeriesView, low: float | None, high: float, onset: Onset | None, axis: _Axis, words: Words) -> str:
    positions = _positions(view, axis.unit)
    values = {"name": view.name, "count": len(positions), "unit": words[f"series_unit_{axis.unit}"]}
    values |= {"first": min(positions), "last": max(positions)}
    if low is None:
        label = str(words["series_empty"].format(**values))
    else:
        label = str(words["series_steady"].format(**values, low=number(low), high=number(high)))
    if onset is not None:
        label += words[f"series_label_{onset.kind}"].format(at=words[f"series_at_{view.unit}"].format(step=onset.step))
    return label


def _text(view: SeriesView, place: int, words: Words) -> str:
    if place in view.hidden:
        return str(words["series_hidden_value"])
    value = float(view.values[place])
    return "NaN" if math.isnan(value) else number(value)


def _table(view: SeriesView, onset: Onset | None, words: Words) -> tuple[tuple[int, str, bool], ...]:
    """The values around the onset, or the last ones."""
    centre = view.steps.index(onset.step) if onset is not None else len(view.steps)
    start = max(0, min(centre - TABLE_ROWS // 2, len(view.steps) - TABLE_ROWS))
    places = range(start, min(start + TABLE_ROWS, len(view.steps)))
    return tuple(
        (view.steps[place], _text(view, place, words), onset is not None and place == centre) for place in places
    )


def _summary(view: SeriesView, side: str, words: Words) -> Summary:
    onset = _onset_place(view)

    def cell(place: int) -> str:
        return f"{_text(view, place, words)} ({view.steps[place]})"

    last = len(view.steps) - 1
    return Summary(
        name=view.name, side=side, first=cell(0), onset=cell(onset) if onset is not None else "–", last=cell(last)
    )
