"""The headers of CSV files that experiment trackers export: TensorBoard, W&B, SwanLab. Pure.

TensorBoard writes one metric, which only the file's name tells (``run-a-tag-train_loss.csv``). W&B calls its columns
``run - metric``, with ``__MIN`` and ``__MAX`` beside each; SwanLab calls them ``run-metric_step`` and
``run-metric_timestamp``. Both may have columns of several runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainmedic.kb.parse.logs.metrics import is_outcome, normalise

_TENSORBOARD = ["wall time", "step", "value"]
_STEPS = ("step", "_step", "global_step", "train/global_step", "trainer/global_step")
_SPREADS = ("__MIN", "__MAX")
_VALUE, _CLOCK = "_step", "_timestamp"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedColumns:
    """Canonical names of the columns, empty for those that are not read: only the first of ``runs`` is."""

    names: tuple[str, ...]
    runs: tuple[str, ...] = ()


def exported_columns(header: Sequence[str], source: str | None) -> ExportedColumns | None:
    """The columns of an exported table with this header; None if it is of no such tool."""
    first, *others = (cell.strip() for cell in header)
    if [cell.strip().lower() for cell in header] == _TENSORBOARD:
        metric = _metric_of_file(source or "")
        return ExportedColumns(names=("", "step", metric)) if metric else None
    if first.lower() not in _STEPS or not others:
        return None
    if all(" - " in cell for cell in others):
        return _of_runs([("", "") if cell.endswith(_SPREADS) else _split(cell, " - ") for cell in others])
    if all(cell.endswith((_VALUE, _CLOCK)) for cell in others):
        return _of_runs([_named(cell.removesuffix(_VALUE)) if cell.endswith(_VALUE) else ("", "") for cell in others])
    return None


def _of_runs(columns: Sequence[tuple[str, str]]) -> ExportedColumns | None:
    """``columns`` are (run, metric) pairs; without a metric a column is not read."""
    runs = tuple(dict.fromkeys(run for run, metric in columns if metric))
    names = tuple(normalise(metric) if metric and run == runs[0] else "" for run, metric in columns)
    return ExportedColumns(names=("step", *names), runs=runs) if runs else None


def _split(cell: str, mark: str) -> tuple[str, str]:
    run, _, metric = cell.rpartition(mark)
    return run, metric


def _named(cell: str) -> tuple[str, str]:
    """Run and metric of ``run-metric``: both may have hyphens, so the longest known metric at the end counts."""
    for at in (number for number, character in enumerate(cell) if character == "-"):
        if is_outcome(normalise(cell[at + 1 :])):
            return cell[:at], cell[at + 1 :]
    return _split(cell, "-")


def _metric_of_file(name: str) -> str:
    """The metric in a file's name, where a blank or an underscore replaces the slash of its tag; empty if none is."""
    stem = name.replace("\\", "/").rpartition("/")[2].rpartition(".")[0]
    tag = stem.rpartition("tag-")[2]
    for prefix in ("train_", "training_"):
        tag = tag.removeprefix(prefix)
    words = tag.split("_")
    spellings = ["_".join(words[start:]) for start in range(len(words))]
    spellings += ["/".join((words[start], "_".join(words[start + 1 :]))) for start in range(len(words) - 1)]
    return next((known for known in map(normalise, spellings) if is_outcome(known)), "")
