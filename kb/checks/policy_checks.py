"""Checks of rules about logged rewards, KL, entropy and completions of preference and reinforcement learning."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import pairwise

from trainmedic.kb.checks.log_series import Point, configured, each_log, ends, logs, points, values
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import NOT_SHOWN, Outcome, fires
from trainmedic.kb.frameworks.profiles import profiles
from trainmedic.kb.model.evidence import Row
from trainmedic.kb.parse.logs.metrics import median, rounded_zero

MOST_LOST = 80
"""Nats that a chosen answer may lose: a reward of -8 at the usual beta of 0.1. The bound is ours."""


def _has_other_algorithm(facts: Facts, algorithms: Collection[str]) -> bool:
    algorithm = facts.name("algorithm").value
    return isinstance(algorithm, str) and algorithm not in algorithms


@each_log
def both_rewards_fall(facts: Facts, rows: list[Row]) -> Outcome | None:
    """Fires if margins and accuracies say that the preference is learned and every number is finite."""
    if _has_other_algorithm(facts, ("dpo", "ipo")):
        return None
    chosen, rejected = points(rows, "rewards/chosen", finite=False), points(rows, "rewards/rejected", finite=False)
    margins, accuracies = points(rows, "rewards/margins"), points(rows, "rewards/accuracies")
    if min(len(chosen), len(rejected), len(margins), len(accuracies)) < 8:
        return None
    if not all(math.isfinite(point.value) for point in (*chosen, *rejected)):
        return None
    (begin, end), (other_begin, other_end) = ends(values(chosen)), ends(values(rejected))
    start, last = ends(values(margins))
    falls = end < min(begin - 0.1, 0) and other_end < min(other_begin - 0.1, 0)
    # A chosen reward below -8 is left to someone who reads samples.
    if not falls or end <= -8 or last <= start + 0.05 or ends(values(accuracies))[1] <= 0.55:
        return None
    if _log_probability_lost(facts, rows, end) > MOST_LOST or _surges(values(points(rows, "grad_norm"))):
        return None
    return fires(
        chosen[-1].span,
        rejected[-1].span,
        margins[-1].span,
        chosen=chosen[-1].value,
        rejected=rejected[-1].value,
        margin=margins[-1].value,
        start=start,
        last=last,
    )


def _log_probability_lost(facts: Facts, rows: list[Row], reward: float) -> float:
    """Nats that the chosen answers lost: as logged, else from the reward and a known beta, else 0."""
    chosen, beta = values(points(rows, "logps/chosen")), configured(facts, "beta")
    if len(chosen) >= 2:
        begin, end = ends(chosen)
        return begin - end
    return -reward / beta if beta is not None and beta > 0 else 0.0


def _surges(norms: Sequence[float]) -> bool:
    """Whether the gradient norm ends ten times as high as it began, and above 10."""
    if len(norms) < 6:
        return False
    begin, end = ends(norms)
    return end > 10 and end > 10 * begin


@each_log
def policy_equals_reference(facts: Facts, rows: list[Row]) -> Outcome | None:
    """Fires if rewards or KL are exactly 0 in all rows at a learning rate above 0."""
    rates = values(points(rows, "learning_rate"))
    if not rates or median(rates) <= 0:
        return None
    chosen, rejected, kl = (points(rows, name, finite=False) for name in ("rewards/chosen", "rewards/rejected", "kl"))
    # No update has been made in the first row or two of a run; in bf16 the first ones of a warm-up are rounded away.
    least = 10 if all(before < after for before, after in pairwise(rates)) else 4
    if _is_zero(chosen, least) and _is_zero(rejected, least):
        return fires(chosen[0].span, chosen[-1].span, name="rewards/chosen", count=len(chosen), rate=median(rates))
    # Without rewards that differ within groups there is nothing to learn; KTO's KL, clamped at 0, has none.
    if _is_zero(kl, least) and _groups_differ(rows):
        return fires(kl[0].span, kl[-1].span, name="kl", count=len(kl), rate=median(rates))
    return None


def _groups_differ(rows: list[Row]) -> bool:
    """TRL takes reward_std over the whole batch since 0.27.0; the share of flat groups, if logged, then decides."""
    spread, flat = values(points(rows, "reward_std")), values(points(rows, "frac_reward_zero_std"))
    return bool(spread) and median(spread) > 0 and not (flat and median(flat) >= 0.9)


def _is_zero(series: Sequence[Point], least: int) -> bool:
    return len(series) >= least and all(point.value == 0 and not rounded_zero(point.metric) for point in series)


@each_log
def on_policy_loss_near_zero(facts: Facts, rows: list[Row]) -> Outcome | None:
    """Fires if the loss is small, norms are finite and above 0, rewards differ within groups, and nothing declines."""
    if _has_other_algorithm(facts, ("grpo", "rloo", "dapo", "gspo", "dr_grpo")):
        return None
    losses, norms, spread = (points(rows, name) for name in ("loss", "grad_norm", "reward_std"))
    if min(len(losses), len(norms), len(spread)) < 3 or len(norms) < len(points(rows, "grad_norm", finite=False)):
        return None
    level, norm = median([abs(loss) for loss in values(losses)]), median(values(norms))
    if level >= 0.01 or norm <= 1e-3 or not _groups_differ(rows) or _declines(rows):
        return None
    return fires(losses[-1].span, norms[-1].span, level=level, norm=norm, count=len(losses))


def _declines(rows: list[Row]) -> bool:
    """Whether an on-policy run is sick for another reason: its loss near 0 must not be called healthy then."""
    rewards, entropies, clipped, kl = (
        values(points(rows, name)) for name in ("reward", "entropy", "clipped_ratio", "kl")
    )
    if len(rewards) >= 2:
        begin, end = ends(rewards)
        if begin - end > 0.3 * abs(begin):
            return True
    if len(entropies) >= 2 and ends(entropies)[1] < 0.1 * ends(entropies)[0]:
        return True
    too_long = bool(clipped) and median(clipped) >= 0.9
    return too_long or (len(kl) >= 2 and ends(kl)[1] > 1) or _surges(values(points(rows, "grad_norm")))


@each_log
def kl_stays_negative(facts: Facts, rows: list[Row]) -> Outcome | None:
    """Fires below -1, where TRL's own warning began: a sum over tokens near 0 scatters around it."""
    if _has_other_algorithm(facts, ("ppo", "reinforce", "grpo", "rloo")):
        return None
    if any("rewards/chosen" in row.metrics for row in rows):
        return None
    kl = points(rows, "kl")[-5:]
    if len(kl) < 5 or median(values(kl)) >= -1 or max(values(kl)) > 0:
        return None
    return fires(kl[0].span, kl[-1].span, begin=kl[0].value, end=kl[-1].value)


def entropy_is_used_up(facts: Facts) -> Outcome:
    """Fires if a tenth of the entropy is left, and the reward of the last third is within 2 % of the middle's."""
    wrong = ((each.package, each.wrong_metrics.get("entropy")) for each in profiles().values())
    if any(releases and facts.version(package, releases).value is True for package, releases in wrong):
        return NOT_SHOWN
    for rows in logs(facts):
        entropies, rewards = points(rows, "entropy"), points(rows, "reward")
        if len(entropies) < 20 or len(rewards) < 20:
            continue
        begin, end = median(values(entropies[:3])), median(values(entropies[-3:]))
        third = len(rewards) // 3
        middle, last = median(values(rewards[third:-third])), median(values(rewards[-third:]))
        best = max(abs(middle), abs(last))
        if 0.95 <= last <= 1:  # the task is solved
            continue
        if begin > 0 and 0 <= end < 0.1 * begin and best > 0 and last - middle <= 0.02 * best:
            return fires(
                entropies[0].span,
                entropies[-1].span,
                rewards[-1].span,
                begin=begin,
                end=end,
                middle=middle,
                last=last,
                count=len(entropies),
            )
    return NOT_SHOWN


@each_log
def entropy_surges(facts: Facts, rows: list[Row]) -> Outcome | None:
    """Fires if the last entropies are three times the earlier ones, and the reward falls or the norm surges too."""
    entropies, norms, rewards = (points(rows, name) for name in ("entropy", "grad_norm", "reward"))
    if len(entropies) < 15 or len(rewards) < 15:
        return None
    usual, end = median(values(entropies[:-3])), median(values(entropies[-3:]))
    if usual <= 0 or end < 3 * usual or end < 0.2:  # an entropy that only returns to 0.2 is not a surge
        return None
    best = max(median(values(rewards[i : i + 3])) for i in range(len(rewards) - 2))
    reward = median(values(rewards[-3:]))
    reward_falls = best > 0 and reward < 0.7 * best
    norm_surges = len(norms) >= 15 and median(values(norms[-3:])) >= 3 * median(values(norms[:-3]))
    if not reward_falls and not norm_surges:
        return None
    spans = entropies[-4].span, entropies[-1].span, rewards[-1].span
    return fires(*spans, usual=usual, end=end, reward=reward, best=best)


@each_log
def groups_without_variance(facts: Facts, rows: list[Row]) -> Outcome | None:
    """Fires if reward_std is 0, or nearly all groups are flat, in four rows of five."""
    shares = points(rows, "frac_reward_zero_std")
    spread = [point for point in points(rows, "reward_std") if not rounded_zero(point.metric)]
    flat = [point for point in shares if point.value >= 0.95] if shares else [p for p in spread if p.value == 0]
    count, clipped = len(shares or spread), values(points(rows, "clipped_ratio"))
    if count < 5 or len(flat) < 0.8 * count or (clipped and median(clipped) >= 0.9):
        return None
    rewards = points(rows, "reward")
    level = median(values(rewards)) if rewards else math.nan
    spans = [flat[0].span, flat[-1].span, *(point.span for point in rewards[-1:])]
    return fires(*spans, count=len(flat), all=count, name=flat[0].metric.name, level=level)


@each_log
def completions_at_the_cap(facts: Facts, rows: list[Row]) -> Outcome | None:
    """Fires if 90 % are cut, or the mean length is the configured limit, in four rows of five; or half in every row."""
    limit = configured(facts, "max_completion_length")
    cut = points(rows, "clipped_ratio")
    lengths = points(rows, "completion_length")
    if cut and facts.option("mask_truncated_completions").value is True:
        return None  # TRL's own rule names the option
    series, bound = (cut, 0.9) if cut else (lengths if limit is not None else [], 0.99 * (limit or 0))
    capped = [point for point in series if point.value >= bound]
    nearly_all = len(capped) >= 0.8 * len(series)
    if cut and not nearly_all and all(point.value >= 0.5 for point in cut):
        capped = cut
    if len(series) < 3 or len(capped) < 0.8 * len(series):
        return None
    return fires(
        capped[0].span,
        capped[-1].span,
        count=len(capped),
        all=len(series),
        share_en="nine of ten" if nearly_all else "half of all",
        share_zh="九成" if nearly_all else "一半",
        level=median(values(lengths)) if lengths else math.nan,
        limit_en=f", configured {limit:g}" if limit is not None else "",
        limit_zh=f"，设定 {limit:g}" if limit is not None else "",
    )


@each_log
def rollout_probabilities_differ(facts: Facts, rows: list[Row]) -> Outcome | None:
    """Fires above 0.01: by verl's FAQ, below 0.005 is ordinary and above 0.01 points to the engine."""
    for name in ("training/rollout_probs_diff_mean", "rollout_probs_diff_mean"):
        means = points(rows, name)
        if len(means) >= 3 and median(values(means)) > 0.01:
            return fires(means[0].span, means[-1].span, count=len(means), begin=means[0].value, end=means[-1].value)
    return None
