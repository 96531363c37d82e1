"""Timing, and the tables that benchmarks print."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


def milliseconds(call: Callable[[], object]) -> float:
    """The duration of one call."""
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure measured several times. ``judged``, by default the median, is compared with ``budget``."""

    what: str
    values: Sequence[float]
    unit: str
    budget: float | None = None
    judged: float | None = None

    @property
    def figure(self) -> float:
        return statistics.median(self.values) if self.judged is None else self.judged

    @property
    def holds(self) -> bool:
        """Whether the figure is within the budget, if there is one."""
        return self.budget is None or self.figure <= self.budget


@dataclass(slots=True)
class Table:
    title: str
    rows: list[Row] = field(default_factory=list)

    def add(self, what: str, values: Sequence[float], unit: str, budget: float | None = None) -> None:
        self.rows.append(Row(what=what, values=values, unit=unit, budget=budget))

    def print(self) -> int:
        """Print as Markdown and return the exit code: 1 if a budget is missed."""
        lines = [f"### {self.title}", "", "| what | min | median | max | budget |", "|---|---|---|---|---|"]
        for row in self.rows:
            low, middle, high = min(row.values), statistics.median(row.values), max(row.values)
            figures = " | ".join(f"{value:.3g}" if value < 100 else f"{value:.0f}" for value in (low, middle, high))
            budget = "" if row.budget is None else f"{row.budget:g} {'✓' if row.holds else '✗ missed'}"
            lines.append(f"| {row.what}, {row.unit} | {figures} | {budget} |")
        sys.stdout.write("\n".join(lines) + "\n\n")
        sys.stdout.flush()
        return 0 if all(row.holds for row in self.rows) else 1
