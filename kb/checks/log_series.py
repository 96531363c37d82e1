"""Logged numbers as series: which rows belong together, their levels at both ends, and how a message names a place.

Rules that judge a whole log share this. A row that only reports an evaluation is not a training row. A text may hold
several logs, and one log several starts: the steps or the epoch fall back where a run begins again, and no trend is
drawn across such a place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import NOT_SHOWN, Outcome
from trainmedic.kb.engine.values import is_number
from trainmedic.kb.model.evidence import Metric, Row
from trainmedic.kb.model.place import Span
from trainmedic.kb.parse.logs.metrics import median

WATCHED = ("loss", "policy_loss", "value_loss", "nll_loss", "grad_norm", "kl", "reward")
"""Metrics that must be finite in a training row. Rewards by name may lack a class or a reward function: left out."""
EARLY_STEPS, EARLY_EPOCH = 50, 0.05


@dataclass(frozen=True, slots=True)
class Point:
    """One value of one metric: its row, its number among the rows of its log (from 1), and what was logged."""

    row: Row
    number: int
    metric: Metric

    @property
    def value(self) -> float:
        """The logged number; may be NaN or infinite."""
        return self.metric.value

    @property
    def span(self) -> Span:
        return self.metric.span

    @property
    def where(self) -> tuple[str, str]:
        """The place in words, English and Chinese: the stated step, else the number of the row."""
        if self.row.step is not None:
            return f"step {self.row.step}", f"第 {self.row.step} 步"
        return f"logged row {self.number}", f"第 {self.number} 行日志"


def logs(facts: Facts) -> list[list[Row]]:
    """The training rows of every log, each list one stretch of one run."""
    return facts.once(__name__, _logs)


def _logs(facts: Facts) -> list[list[Row]]:
    rows_of_log: dict[tuple[str | None, str], list[Row]] = {}
    for row in facts.evidence.rows:
        if not row.evaluation:
            rows_of_log.setdefault((row.span.attachment, row.style), []).append(row)
    return [part for rows in rows_of_log.values() for part in _starts(rows)]


def each_log(check: Callable[[Facts, list[Row]], Outcome | None]) -> Callable[[Facts], Outcome]:
    """The check of a whole paste by one of each log: the outcome of the first log that has one."""

    def check_all(facts: Facts) -> Outcome:
        outcomes = (check(facts, rows) for rows in logs(facts))
        return next((outcome for outcome in outcomes if outcome is not None), NOT_SHOWN)

    return check_all


def _starts(rows: Sequence[Row]) -> list[list[Row]]:
    parts: list[list[Row]] = []
    last: tuple[float, float] = (-math.inf, -math.inf)
    for row in rows:
        epoch = row.metrics.get("epoch")
        at = (
            float(row.step) if row.step is not None else last[0],
            epoch.value if epoch is not None and math.isfinite(epoch.value) else last[1],
        )
        if not parts or at[0] < last[0] or at[1] < last[1]:
            parts.append([])
        parts[-1].append(row)
        last = at
    return parts


def evaluations(facts: Facts, name: str = "eval_loss") -> list[Point]:
    """The finite values of an evaluation metric, in order; of the first text that logs any."""
    rows = [row for row in facts.evidence.rows if name in row.metrics]
    rows = [row for row in rows if row.span.attachment == rows[0].span.attachment]
    return points(rows, name)


def points(rows: Sequence[Row], name: str, *, finite: bool = True) -> list[Point]:
    """The values of one metric with their rows; those that are not finite only where asked for."""
    return [
        Point(row, number, row.metrics[name])
        for number, row in enumerate(rows, 1)
        if name in row.metrics and (not finite or math.isfinite(row.metrics[name].value))
    ]


def values(series: Iterable[Point]) -> list[float]:
    return [point.value for point in series]


def ends(numbers: Sequence[float]) -> tuple[float, float]:
    """The level at the start and at the end: medians of the first and of the last third."""
    third = max(1, len(numbers) // 3)
    return median(numbers[:third]), median(numbers[-third:])


def peak_rate(facts: Facts, rows: Sequence[Row]) -> float:
    """The learning rate that the schedule rises to: the configured one where it is known, else the highest logged."""
    configured = facts.name("learning_rate").value
    if is_number(configured) and configured > 0:
        return float(configured)
    return max(values(points(rows, "learning_rate")), default=0.0)


def configured(facts: Facts, name: str) -> float | None:
    """A setting that is a number and that the user wrote, else None."""
    fact = facts.name(name)
    return float(fact.value) if is_number(fact.value) and fact.user_provided else None


@dataclass(frozen=True, slots=True)
class Break:
    """Where a log stops being finite for good: the first bad value, and the rows before it."""

    point: Point
    before: tuple[Row, ...]
    others: tuple[str, ...]  # further metrics that are not finite in the same row


def break_of(rows: Sequence[Row]) -> Break | None:
    """The first value that is not finite, if that metric is not finite in the last row that has it either.

    A scaler that skips a step logs one infinite norm and recovers: no break. A loss of 0 beside a norm that is NaN is
    a loss that the Hugging Face log filter replaced.
    """
    for index, row in enumerate(rows):
        bad = [name for name in WATCHED if name in row.metrics and not math.isfinite(row.metrics[name].value)]
        if not bad:
            continue
        name = bad[0]
        last = next(other.metrics[name] for other in reversed(rows) if name in other.metrics)
        if math.isfinite(last.value) or (name == "grad_norm" and _only_the_norm(rows[index:])):
            continue
        return Break(Point(row, index + 1, row.metrics[name]), tuple(rows[:index]), tuple(bad[1:]))
    return None


def _only_the_norm(rows: Sequence[Row]) -> bool:
    """Whether the losses beside a bad norm go on as ordinary numbers: not finite, or 0, is what a broken run logs."""
    losses = [row.metrics["loss"].value for row in rows if "loss" in row.metrics]
    return bool(losses) and all(math.isfinite(value) and value != 0 for value in losses)


def early(rows: Sequence[Row]) -> bool:
    """Whether the first row stands at the start of a run, judged by its step or epoch."""
    first = rows[0]
    epoch = first.metrics.get("epoch")
    if first.step is not None:
        return first.step <= EARLY_STEPS
    return epoch is not None and epoch.value <= EARLY_EPOCH
