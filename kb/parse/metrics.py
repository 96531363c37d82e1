"""Metric names and numbers of training logs, and the arithmetic that rules do on series of rows.

Names are normalised so that one question ("is the KL negative?") covers every framework:

========================  =====================================================================================
canonical                 also written
========================  =====================================================================================
loss                      train/loss, training loss, lm loss, gpt_loss, sft_loss, dpo_loss, kto_loss, total_loss
policy_loss, value_loss   actor/pg_loss, pg, act_loss / critic/vf_loss, critic_loss, cri
grad_norm                 grad norm, gradnorm, gnorm, gradient_norm, actor/grad_norm, global_grad_norm
learning_rate             lr, actor/lr, act_lr, actor_lr
epoch, step               training/epoch / global_step, iteration, iter, current_steps, training/global_step
rewards/chosen|rejected   chosen_reward, reject_reward, rejected_reward
rewards/margins           reward_margin, margins, margin
rewards/accuracies        acc, reward_accuracy, preference_acc
reward, reward_std        rm, critic/rewards/mean, objective/rlhf_reward / critic/rewards/std
score                     critic/score/mean, objective/scores
logps/*, logits/*         as TRL, LLaMA-Factory and ms-swift write them
kl                        mean_kl, objective/kl, critic/kl, actor/kl_loss, actor/reward_kl_penalty
ppo_kl                    actor/ppo_kl, approx_kl, policy/approxkl_avg (old against new policy, not the reference)
nll_loss, entropy         nll loss / actor/entropy, actor/entropy_loss, policy/entropy_avg
completion_length         completions/mean_length, mean_completion_length, glen, response_length
response_length/mean      (verl keeps its own name)
clip_ratio                clip_ratio/region_mean, actor/pg_clipfrac (share of clipped probability ratios)
clipped_ratio             completions/clipped_ratio, response_length/clip_ratio (share of cut-off completions)
eval_*                    eval/*, val_loss, valid_loss, validation loss
========================  =====================================================================================

Any other name is kept as written. The second metric of a row that maps to a name already taken keeps its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from trainmedic.kb.model.evidence import Metric, Row

_ALIASES = {
    alias: name
    for name, aliases in {
        "loss": ("training_loss", "lm_loss", "gpt_loss", "sft_loss", "dpo_loss", "kto_loss", "rm_loss", "total_loss"),
        "policy_loss": ("actor/pg_loss", "pg", "pg_loss", "act_loss", "actor_loss", "policy/loss"),
        "value_loss": ("critic/vf_loss", "critic_loss", "cri", "vf_loss", "value/loss"),
        "grad_norm": ("gradnorm", "gnorm", "gradient_norm", "actor/grad_norm", "global_grad_norm", "total_norm"),
        "learning_rate": ("lr", "actor/lr", "act_lr", "actor_lr"),
        "epoch": ("training/epoch", "epochs"),
        "step": (
            "global_step", "steps", "iteration", "iter", "iterations", "current_steps", "training/global_step",
            "_step", "cur_step", "global_steps",
        ),
        "rewards/chosen": ("chosen_reward", "chosen_rewards", "reward/chosen"),
        "rewards/rejected": ("reject_reward", "rejected_reward", "rejected_rewards", "reward/rejected"),
        "rewards/margins": ("reward_margin", "reward_margins", "margins", "margin", "reward/margin"),
        "rewards/accuracies": ("acc", "reward_accuracy", "reward_acc", "preference_acc", "rewards/accuracy"),
        "reward": ("rm", "reward_mean", "mean_reward", "critic/rewards/mean", "objective/rlhf_reward"),
        "reward_std": ("critic/rewards/std", "reward/std"),
        "score": ("critic/score/mean", "objective/scores"),
        "kl": ("mean_kl", "objective/kl", "critic/kl", "actor/kl_loss", "actor/reward_kl_penalty", "kl_divergence"),
        "ppo_kl": ("actor/ppo_kl", "approx_kl", "policy/approxkl_avg"),
        "nll_loss": ("nll",),
        "entropy": ("actor/entropy", "actor/entropy_loss", "policy/entropy_avg", "mean_entropy"),
        "completion_length": (
            "completions/mean_length", "mean_completion_length", "completion_length/mean", "glen", "response_length",
        ),
        "clip_ratio": ("clip_ratio/region_mean", "actor/pg_clipfrac", "policy/clipfrac_avg", "clipfrac"),
        "clipped_ratio": ("completions/clipped_ratio", "response_length/clip_ratio"),
        "eval_loss": ("val_loss", "valid_loss", "validation_loss", "val/loss", "test_loss"),
    }.items()
    for alias in aliases
}  # fmt: skip

_OUTCOMES = frozenset(
    {
        "loss", "policy_loss", "value_loss", "train_loss", "eval_loss", "grad_norm", "reward", "reward_std", "score",
        "kl", "ppo_kl", "nll_loss", "entropy", "completion_length", "clip_ratio", "clipped_ratio", "loss_mean",
        "kl_loss", "ptx_loss", "aux_loss", "acc_mean", "perplexity", "ppl",
    }
)  # fmt: skip
_OUTCOME_PREFIXES = ("rewards/", "logps/", "logits/", "actor/", "critic/", "response_length/", "completions/")
# Also options of the same name ("clip_ratio: 0.2" in a YAML file), so these alone make no row.
_AMBIGUOUS = frozenset({"clip_ratio", "clipped_ratio", "score", "entropy", "aux_loss", "perplexity", "ppl"})

LOSSES = ("loss", "policy_loss", "value_loss", "train_loss", "loss_mean")
LENGTHS = ("completion_length", "response_length/mean")

NUMBER = r"[-+−]?(?:[0-9]++(?:\.[0-9]*+)?(?:[eE][-+]?[0-9]++)?|\.[0-9]++(?:[eE][-+]?[0-9]++)?|(?i:nan|inf(?:inity)?))"
"""A number as logs print it. Its digits are possessive: matching is linear in the text."""

_SPACES = re.compile(r"[\s_]+")


@lru_cache(maxsize=4096)
def normalise(raw: str) -> str:
    """The canonical name of a metric, as the table above; ``raw`` itself where it is not in it."""
    name = _SPACES.sub("_", raw.strip().lower())
    if " - " in raw:  # wandb exports "run name - train/loss"
        name = _SPACES.sub("_", raw.rsplit(" - ", 1)[1].strip().lower())
    for prefix in ("train/", "training/"):
        if name.startswith(prefix):
            name = name[len(prefix) :]
    if name.startswith("eval/"):
        name = "eval_" + name[len("eval/") :]
    name = "grad_norm" if name == "grad-norm" else name
    canonical = _ALIASES.get(name)
    if canonical is not None:
        return canonical
    return name if is_outcome(name) or name in _ALIASES.values() else raw.strip()


@lru_cache(maxsize=4096)
def is_outcome(name: str) -> bool:
    """Whether a canonical name is something training produced, not something that was configured."""
    if name.startswith("eval_"):  # not eval_steps, eval_batch_size
        return name == "eval_accuracy" or (name != "eval_" and is_outcome(name[len("eval_") :]))
    return name in _OUTCOMES or name.startswith(_OUTCOME_PREFIXES)


def makes_row(names: Iterable[str]) -> bool:
    """Whether metrics of these canonical names are a logged row, not a piece of a configuration."""
    return any(is_outcome(name) and name not in _AMBIGUOUS for name in names)


def number(text: str) -> float:
    """The number in ``text``, which matched `NUMBER`."""
    return float(text.replace("−", "-"))


def series(rows: Sequence[Row], name: str) -> tuple[Metric, ...]:
    """Every value of one metric, in the order of the rows."""
    return tuple(row.metrics[name] for row in rows if name in row.metrics)


def first(rows: Sequence[Row], name: str) -> Metric | None:
    """The first logged value of a metric."""
    return next((row.metrics[name] for row in rows if name in row.metrics), None)


def last(rows: Sequence[Row], name: str) -> Metric | None:
    """The last logged value of a metric."""
    return next((row.metrics[name] for row in reversed(rows) if name in row.metrics), None)


def finite_except(row: Row, prefixes: tuple[str, ...] = ()) -> bool:
    """Whether every number of a row is finite, not looking at the metrics whose name starts with one of
    ``prefixes``."""
    return all(math.isfinite(m.value) for name, m in row.metrics.items() if not name.startswith(prefixes))


def finite(metrics: Iterable[Metric]) -> tuple[Metric, ...]:
    """The finite ones, in order."""
    return tuple(metric for metric in metrics if math.isfinite(metric.value))


def median(values: Sequence[float]) -> float:
    """The median of at least one value."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else ordered[middle - 1] / 2 + ordered[middle] / 2


def spread(values: Sequence[float]) -> float:
    """The median absolute deviation: unlike a standard deviation, one spike does not hide itself in it."""
    centre = median(values)
    return median([abs(value - centre) for value in values])


def rounded_zero(metric: Metric) -> bool:
    """Whether a zero may only be a small number printed with a few fixed decimals (verl prints ``actor/lr:0.000``)."""
    return metric.value == 0 and re.search(r"0\.0{2,}\W*$", metric.span.text) is not None


def is_rl(row: Row) -> bool:
    """Whether a row comes from on-policy training, where a loss near zero or below it is ordinary."""
    marks = ("reward", "reward_std", "policy_loss", "completion_length", "response_length/mean", "frac_reward_zero_std")
    return any(name in row.metrics for name in marks)
