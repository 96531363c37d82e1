"""Metric names and numbers of training logs, and the arithmetic that rules do on series of rows.

Names are normalised, so that one question ("is the KL negative?") covers every framework; `data/metrics.toml` lists
their spellings. Two pairs are easily confused: ``kl`` is against the reference model and ``ppo_kl`` of the new against
the old policy; ``clip_ratio`` is the share of clipped probability ratios and ``clipped_ratio`` that of completions cut
off at the length limit.

Any other name is kept as written. The second metric of a row that maps to a name already taken keeps its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from trainmedic.kb.data_files import load_table
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Metric, Row

_TABLE = load_table("parse/data/metrics.toml")
_ALIASES: Mapping[str, str] = {alias: name for name, aliases in _TABLE["aliases"].items() for alias in aliases}
_OUTCOMES = frozenset(_TABLE["outcomes"])
_OUTCOME_PREFIXES = ("rewards/", "logps/", "logits/", "actor/", "critic/", "response_length/", "completions/")
# Also options of the same name ("clip_ratio: 0.2" in a YAML file), so these alone make no row.
_AMBIGUOUS = frozenset({"clip_ratio", "clipped_ratio", "score", "entropy", "aux_loss", "perplexity", "ppl"})

_REDUCTIONS = ("", "sum", "mean", "max", "min")

LOSSES = ("loss", "policy_loss", "value_loss", "train_loss", "loss_mean")
LENGTHS = ("completion_length",)

NUMBER = r"[-+−]?(?:[0-9]++(?:\.[0-9]*+)?(?:[eE][-+]?[0-9]++)?|\.[0-9]++(?:[eE][-+]?[0-9]++)?|(?i:nan|inf(?:inity)?))"
"""A number as logs print it. Its digits are possessive: matching is linear in the text."""

_SPACES = regex(r"[\s_]+")


@lru_cache(maxsize=4096)
def normalise(raw: str) -> str:
    """The canonical name of a metric; ``raw`` itself if it is not a known one."""
    name = _SPACES.sub("_", raw.strip().lower())
    if " - " in raw:  # wandb exports "run name - train/loss"
        name = _SPACES.sub("_", raw.rsplit(" - ", 1)[1].strip().lower())
    for prefix in ("train/", "training/"):
        if name.startswith(prefix):
            name = name[len(prefix) :]
    if name.startswith("eval/"):
        name = "eval_" + name[len("eval/") :]
    name = "grad_norm" if name == "grad-norm" else name
    name, _, reduction = name.partition("@")  # ROLL: "actor/pg_loss@sum"
    if reduction not in _REDUCTIONS:
        return raw.strip()
    canonical = _ALIASES.get(name)
    if canonical is not None:
        return canonical
    return name if is_outcome(name) or name in _ALIASES.values() else raw.strip()


@lru_cache(maxsize=4096)
def is_outcome(name: str) -> bool:
    if name.startswith("eval_"):  # not eval_steps, eval_batch_size
        return name == "eval_accuracy" or (name != "eval_" and is_outcome(name[len("eval_") :]))
    return name in _OUTCOMES or name.startswith(_OUTCOME_PREFIXES)


def makes_row(names: Iterable[str]) -> bool:
    """Whether metrics of these canonical names are a logged row, not a piece of a configuration."""
    return any(is_outcome(name) and name not in _AMBIGUOUS for name in names)


def number(text: str) -> float:
    return float(text.replace("−", "-"))


def series(rows: Sequence[Row], name: str) -> tuple[Metric, ...]:
    return tuple(row.metrics[name] for row in rows if name in row.metrics)


def first(rows: Sequence[Row], name: str) -> Metric | None:
    return next((row.metrics[name] for row in rows if name in row.metrics), None)


def last(rows: Sequence[Row], name: str) -> Metric | None:
    return next((row.metrics[name] for row in reversed(rows) if name in row.metrics), None)


def finite_except(row: Row, prefixes: tuple[str, ...] = ()) -> bool:
    """Whether every number of a row is finite, not looking at the metrics whose name starts with one of
    ``prefixes``."""
    return all(math.isfinite(m.value) for name, m in row.metrics.items() if not name.startswith(prefixes))


def finite(metrics: Iterable[Metric]) -> tuple[Metric, ...]:
    return tuple(metric for metric in metrics if math.isfinite(metric.value))


def median(values: Sequence[float]) -> float:
    """The median of at least one value."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else ordered[middle - 1] / 2 + ordered[middle] / 2


def spread(values: Sequence[float]) -> float:
    """The median absolute deviation: unlike the standard deviation, a single spike does not inflate it."""
    centre = median(values)
    return median([abs(value - centre) for value in values])


def rounded_zero(metric: Metric) -> bool:
    """Whether a zero may only be a small number printed with a few fixed decimals (verl prints ``actor/lr:0.000``)."""
    return metric.value == 0 and re.search(r"0\.0{2,}\W*$", metric.span.text) is not None


def is_rl(row: Row) -> bool:
    """Whether a row comes from on-policy training, where a loss near zero or below it is ordinary."""
    marks = ("reward", "reward_std", "policy_loss", "completion_length", "frac_reward_zero_std")
    return any(name in row.metrics for name in marks)
