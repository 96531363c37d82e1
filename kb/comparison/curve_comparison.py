"""Where the logged curves of two runs part. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from trainmedic.kb.model.evidence import Evidence, Metric
from trainmedic.kb.parse.logs.metrics import is_outcome, median

COMPARED = ("loss", "grad_norm", "learning_rate")
"""Metrics that come first; the learning rate is not an outcome, but its curve shows another schedule."""
FEWEST = 3
"""Common steps without which two curves cannot be compared."""
WINDOW = 5
"""Points in a row that must differ, so that one spike is not yet another curve."""
NOISE_FACTOR = 4.0
"""How many times the curve's own step-to-step change a difference must be."""
LEAST_SHARE = 0.02
"""Share of the value below which a difference does not count, whatever the noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveParting:
    """The first step from which a metric differs for good: its values there and where they were read.

    ``whole``: the curves differ from their first common step.
    """

    metric: str
    step: int
    good: Metric
    bad: Metric
    whole: bool


def partings(good: Evidence, bad: Evidence) -> tuple[CurveParting, ...]:
    """The metrics of both logs whose curves part, the earliest first."""
    before, after = _curves(good), _curves(bad)
    names = sorted(before.keys() & after.keys(), key=lambda name: (_place(name), name))
    found = [parting for name in names if (parting := _parting(name, before[name], after[name])) is not None]
    return tuple(sorted(found, key=lambda parting: (parting.step, _place(parting.metric))))


def _place(name: str) -> int:
    return COMPARED.index(name) if name in COMPARED else len(COMPARED)


def _curves(evidence: Evidence) -> dict[str, dict[int, Metric]]:
    """Metric → step → value. Rows without a step are numbered in their order."""
    curves: dict[str, dict[int, Metric]] = {}
    rows = [row for row in evidence.rows if row.style != "user"]
    numbered = any(row.step is None for row in rows if not row.evaluation)
    number = 0
    for row in rows:
        number += not row.evaluation
        step = number if numbered or row.step is None else row.step
        for name, metric in row.metrics.items():
            if is_outcome(name) or name in COMPARED:
                curves.setdefault(name, {}).setdefault(step, metric)
    return curves


def _parting(name: str, good: dict[int, Metric], bad: dict[int, Metric]) -> CurveParting | None:
    steps = sorted(good.keys() & bad.keys())
    if len(steps) < FEWEST:
        return None
    noise = NOISE_FACTOR * _noise([good[step].value for step in steps])
    differing = [_differs(good[step].value, bad[step].value, noise) for step in steps]
    for place in _starts(differing):
        step = steps[place]
        return CurveParting(metric=name, step=step, good=good[step], bad=bad[step], whole=place == 0)
    return None


def _starts(differing: Sequence[bool]) -> Iterator[int]:
    """Places from which all of a window differ; a window that the end cuts short needs two points."""
    for place in range(len(differing) - 1):
        window = differing[place : place + WINDOW]
        if all(window):
            yield place


def _noise(values: Sequence[float]) -> float:
    """The median change from one finite value to the next."""
    finite = [value for value in values if math.isfinite(value)]
    changes = [abs(second - first) for first, second in pairwise(finite)]
    return median(changes) if changes else 0.0


def _differs(good: float, bad: float, noise: float) -> bool:
    if not (math.isfinite(good) and math.isfinite(bad)):
        return math.isfinite(good) != math.isfinite(bad)
    return abs(good - bad) > max(noise, LEAST_SHARE * max(abs(good), abs(bad)))
