"""The tables that benchmarks print, and whether their budgets hold."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure measured several times. ``judged`` is what is held against ``budget``: the median where None."""

    what: str
    values: Sequence[float]
    unit: str
    budget: float | None = None
    judged: float | None = None

    @property
    def figure(self) -> float:
        """What the budget is about."""
        return statistics.median(self.values) if self.judged is None else self.judged

    @property
    def holds(self) -> bool:
        """Whether the budget is kept; a row without one always holds."""
        return self.budget is None or self.figure <= self.budget


@dataclass(slots=True)
class Table:
    """Rows in the order they were measured."""

    title: str
    rows: list[Row] = field(default_factory=list)

    def add(self, what: str, values: Sequence[float], unit: str, budget: float | None = None) -> None:
        """Add a figure; the median is what a budget is about."""
        self.rows.append(Row(what=what, values=values, unit=unit, budget=budget))

    def print(self) -> int:
        """Print as Markdown. 1 where a budget is missed, else 0."""
        lines = [f"### {self.title}", "", "| what | min | median | max | budget |", "|---|---|---|---|---|"]
        for row in self.rows:
            low, middle, high = min(row.values), statistics.median(row.values), max(row.values)
            shown = " | ".join(f"{value:.3g}" if value < 100 else f"{value:.0f}" for value in (low, middle, high))
            budget = "" if row.budget is None else f"{row.budget:g} {'✓' if row.holds else '✗ missed'}"
            lines.append(f"| {row.what}, {row.unit} | {shown} | {budget} |")
        sys.stdout.write("\n".join(lines) + "\n\n")
        sys.stdout.flush()
        return 0 if all(row.holds for row in self.rows) else 1
