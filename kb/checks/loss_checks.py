"""Checks of rules about the course of a logged loss, gradient norm, learning rate or memory.

The bounds are ours, except where a comment names a source.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from trainmedic.kb.checks.log_series import (
    Point,
    break_of,
    configured,
    each_log,
    early,
    ends,
    evaluations,
    logs,
    peak_rate,
    points,
    values,
)
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.log_text import first
from trainmedic.kb.engine.outcome import NOT_SHOWN, Change, Outcome, fires
from trainmedic.kb.engine.values import is_number
from trainmedic.kb.frameworks.profiles import profiles
from trainmedic.kb.learning_rates import PRACTICE, PREFERENCE, Practice
from trainmedic.kb.model.evidence import Row
from trainmedic.kb.model.report import Safety
from trainmedic.kb.parse.logs.metrics import is_rl, median, rounded_zero

LN_VOCABULARY = (10.2, 12.7)
"""ln of 27 000 to 330 000: the loss of guessing, for every vocabulary in use."""

MEMORY_MAXIMA = ("memory(GiB)", "perf/max_memory_reserved_gb", "perf/max_memory_allocated_gb")
RANDOM_AT_START = (
    "train_from_scratch",
    "freeze_language_model",
    "train_mm_proj_only",
    "tune_mm_mlp_adapter",
    "freeze_llm",
)
"""Options of runs that start at guessing level: a model from scratch, a projector on a frozen language model."""
_OTHER_RATES = ("sgd", "prodigy", "dadapt", "adafactor", "muon", "lion")
"""Optimizers whose learning rates are not those of Adam."""
_UNTRAINED_LOSS = {"dpo": math.log(2), "reward": math.log(2), "kto": 0.5}
_SUMMED = tuple((each.package, each.loss_summed) for each in profiles().values() if each.loss_summed)
"""Packages and releases that log the sum over the accumulated steps."""


# --- not finite -------------------------------------------------------------------------------------------------------


@each_log
def not_finite_from_the_start(facts: Facts, rows: list[Row]) -> Outcome | None:
    broken = break_of(rows)
    if broken is None or broken.before or not early(rows):
        return None
    en, zh = broken.point.where
    metric = broken.point.metric
    return fires(broken.point.span, metric=metric.name, value=metric.value, where_en=en, where_zh=zh)


@each_log
def nan_out_of_nothing(facts: Facts, rows: list[Row]) -> Outcome | None:
    """Fires if the last three norms and losses before the break were no more than three times their median."""
    broken = break_of(rows)
    if broken is None:
        return None
    losses, norms = points(broken.before, "loss"), points(broken.before, "grad_norm")
    if len(losses) < 5 or len(norms) < 5:
        return None
    if any(max(values(series[-3:])) > 3 * max(median(values(series)), 1e-3) for series in (losses, norms)):
        return None
    en, zh = broken.point.where
    return fires(
        norms[-1].span,
        broken.point.span,
        metric=broken.point.metric.name,
        value=broken.point.value,
        count=len(losses),
        last=norms[-1].value,
        where_en=en,
        where_zh=zh,
    )


@each_log
def gradients_grow_before_nan(facts: Facts, rows: list[Row]) -> Outcome | None:
    """Fires if one of the last three norms before the break is ten times the earlier ones, and above 1."""
    broken = break_of(rows)
    norms = points(broken.before, "grad_norm") if broken is not None else []
    if broken is None or len(norms) < 6:
        return None
    usual, top = median(values(norms[:-3])), max(norms[-3:], key=lambda point: point.value)
    if top.value < 10 * usual or top.value <= 1:
        return None
    en, zh = broken.point.where
    metric = broken.point.metric.name
    return fires(top.span, broken.point.span, metric=metric, usual=usual, top=top.value, where_en=en, where_zh=zh)


def gradients_explode_at_high_rate(facts: Facts) -> Outcome:
    """Fires if the norms grow before the break, at a rate beyond the bound of this kind of training."""
    practice, rate = _practice(facts), facts.name("learning_rate")
    if practice is None or not is_number(rate.value) or rate.value <= practice.most:
        return NOT_SHOWN
    grown = gradients_grow_before_nan(facts)
    if grown.value is not True:
        return grown
    change = Change(safety=Safety.UNSAFE, set={"learning_rate": practice.low})
    return replace(grown, evidence=(*rate.spans, *grown.evidence), changes=(change,))


# --- loss -------------------------------------------------------------------------------------------------------------


@each_log
def gradient_stays_zero(facts: Facts, rows: list[Row]) -> Outcome | None:
    """Fires if all norms are 0 while the loss stays where it was: a falling loss is trained, whatever is printed."""
    norms, losses = points(rows, "grad_norm", finite=False), points(rows, "loss")
    if len(norms) < 5 or len(losses) < 5 or _is_rl(rows) or first(facts.evidence, "OVERFLOW! "):
        return None  # a skipped step of fp16 leaves the norm at 0
    if any(point.value != 0 or rounded_zero(point.metric) for point in norms):
        return None
    rewards, rates = points(rows, "rewards/chosen"), values(points(rows, "learning_rate"))
    if rewards and not any(values(rewards)):
        return None  # policy and reference are the same model: another rule says more
    begin, end = ends(values(losses))
    if begin <= 0 or end < 0.97 * begin or (rates and max(rates) <= 0):
        return None
    return fires(norms[0].span, norms[-1].span, count=len(norms), begin=begin, end=end)


@each_log
def loss_zero_from_the_start(facts: Facts, rows: list[Row]) -> Outcome | None:
    if _trains_otherwise(facts) or facts.option("task_type").value in ("embedding", "reranker", "seq_cls"):
        return None  # pairs and embeddings have no labels per token
    losses, norms = points(rows, "loss"), values(points(rows, "grad_norm", finite=False))
    if len(losses) < 2 or any(point.value != 0 for point in losses) or not _is_supervised(rows):
        return None
    if not norms or not all(map(math.isfinite, norms)) or not (early(rows) or not any(norms)):
        return None
    return fires(losses[0].span, losses[-1].span, count=len(losses), norm=norms[-1])


def loss_starts_at_ln_vocabulary(facts: Facts) -> Outcome:
    if facts.name("stage").value == "pretrain" or _trains_otherwise(facts) or _starts_at_random(facts):
        return NOT_SHOWN
    low, high = LN_VOCABULARY
    for rows in logs(facts):
        losses = points(rows, "loss")
        if not losses or not early(rows) or not _is_supervised(rows):
            continue
        if low <= losses[0].value <= high and not _may_be_multiplied(facts):
            en, zh = losses[0].where
            return fires(losses[0].span, loss=losses[0].value, where_en=en, where_zh=zh)
    return NOT_SHOWN


def _trains_otherwise(facts: Facts) -> bool:
    algorithm = facts.name("algorithm").value
    return isinstance(algorithm, str) and algorithm not in ("sft", "pt")


def _starts_at_random(facts: Facts) -> bool:
    """Whether the model, or what stands before a frozen one, is made from a configuration alone."""
    if any(facts.option(name).value is True for name in RANDOM_AT_START):
        return True
    made = any(facts.has_option(name).value is True for name in ("config_name", "config_overrides", "model_type"))
    return (made and facts.has_option("model_name_or_path").value is not True) or any(
        "from_config(" in source.text for source in facts.evidence.sources
    )


def _may_be_multiplied(facts: Facts) -> bool:
    """Whether the logged loss may be a sum over accumulation steps; an evaluation loss as high rules that out."""
    steps = facts.name("gradient_accumulation").value
    if is_number(steps) and steps <= 1:
        return False
    if any(facts.version(name, releases).value is False for name, releases in _SUMMED):
        return False
    evaluated = values(evaluations(facts))
    return not evaluated or evaluated[0] < 0.7 * LN_VOCABULARY[0]


def loss_times_accumulation(facts: Facts) -> Outcome:
    """Fires if a preference loss starts that many times too high, or training is that many times evaluation."""
    steps = configured(facts, "gradient_accumulation")
    if steps is None or steps < 4:  # with fewer, the ratio could be the data's
        return NOT_SHOWN
    evaluated = evaluations(facts)
    start = _UNTRAINED_LOSS.get(str(facts.name("algorithm").value))
    for rows in logs(facts):
        losses = points(rows, "loss")
        if not losses:
            continue
        first = losses[0]
        preference = early(rows) and "rewards/margins" in rows[0].metrics
        if start is not None and preference and abs(first.value / (start * steps) - 1) <= 0.03:
            by = f"{start:.3g}"
            return fires(first.span, loss=first.value, steps=int(steps), true=first.value / steps, by_en=by, by_zh=by)
        level = median(values(losses))
        ratios = [level / value / steps for value in values(evaluated) if value > 0]
        if evaluated and all(abs(ratio - 1) <= 0.1 for ratio in ratios):
            return fires(
                losses[-1].span,
                evaluated[-1].span,
                loss=level,
                steps=int(steps),
                true=level / steps,
                by_en="eval_loss",
                by_zh="eval_loss",
            )
    return NOT_SHOWN


def loss_climbs_at_high_rate(facts: Facts) -> Outcome:
    """Fires if the end is half above the lowest level and above the start, at a rate beyond the bound."""
    practice, full = _practice(facts), facts.name("tuner").value == "full"
    if practice is None:
        return NOT_SHOWN
    bound = practice.most
    for rows in logs(facts):
        losses, rate = points(rows, "loss"), peak_rate(facts, rows)
        if len(losses) < 12 or rate <= bound or _is_rl(rows):
            continue
        levels = [(median(values(losses[i : i + 3])), losses[i + 1]) for i in range(len(losses) - 2)]
        low, turn = min(levels, key=lambda level: level[0])
        end = median(values(losses)[-max(3, len(losses) // 4) :])
        if low > 0 and end > 1.5 * low and end > losses[0].value:
            en, zh = turn.where
            return fires(
                turn.span,
                losses[-1].span,
                low=low,
                end=end,
                rate=rate,
                bound=bound,
                kind_en="full training" if full else "adapters",
                kind_zh="全参训练" if full else "适配器",
                where_en=en,
                where_zh=zh,
            )
    return NOT_SHOWN


def _practice(facts: Facts) -> Practice | None:
    """The learning rates of this kind of fine-tuning, if the optimizer takes those of Adam."""
    optimizer = facts.name("optimizer").value
    other = isinstance(optimizer, str) and any(name in optimizer.lower() for name in _OTHER_RATES)
    if other or facts.name("stage").value == "pretrain" or _starts_at_random(facts):
        return None
    stage = "preference" if facts.name("algorithm").value in PREFERENCE else "sft"
    return PRACTICE[f"{stage}.{'full' if facts.name('tuner').value == 'full' else 'lora'}"]


@each_log
def loss_falls_at_epochs(facts: Facts, rows: list[Row]) -> Outcome | None:
    """Fires at the first border of two logged epochs at which the loss loses a fifth though both sides are level."""
    if not _is_supervised(rows):
        return None
    for before, after in pairwise(_by_epoch(points(rows, "loss"))):
        if len(before) < 3 or len(after) < 3:
            continue
        low, high = median(values(after[:3])), median(values(before[-3:]))
        if low <= 0.8 * high and _is_level(before) and _is_level(after):
            return fires(before[-1].span, after[0].span, high=high, low=low, epoch=_epoch(after[0]))
    return None


def _epoch(point: Point) -> int:
    return int(point.row.metrics["epoch"].value - 1e-9)  # a row at exactly 1.0 closes the first epoch


def _by_epoch(losses: Sequence[Point]) -> list[list[Point]]:
    epochs: list[list[Point]] = []
    for point in losses:
        if "epoch" not in point.row.metrics:
            continue
        if not epochs or _epoch(epochs[-1][-1]) != _epoch(point):
            epochs.append([])
        epochs[-1].append(point)
    return epochs


def _is_level(epoch: Sequence[Point]) -> bool:
    """Whether the later half is about as high as the earlier (a steady fall is not one); few rows must lie close."""
    losses = values(epoch)
    half = len(losses) // 2
    close = len(losses) >= 6 or max(losses) <= 1.1 * min(losses)
    return median(losses[half:]) >= 0.9 * median(losses[:half]) and close


def eval_loss_rises(facts: Facts) -> Outcome:
    """Fires if the last two evaluations are a tenth above the lowest while the training loss fell by 15 %."""
    evaluated = evaluations(facts)
    if len(evaluated) < 4:
        return NOT_SHOWN
    lowest, last = min(evaluated, key=lambda point: point.value), evaluated[-1]
    if lowest.value <= 0 or any(point.value < 1.1 * lowest.value for point in evaluated[-2:]):
        return NOT_SHOWN
    for rows in logs(facts):
        losses = values(points(rows, "loss"))
        if len(losses) < 4:
            continue
        begin, end = ends(losses)
        if end <= 0.85 * begin:
            return fires(
                lowest.span,
                last.span,
                lowest=lowest.value,
                last=last.value,
                begin=begin,
                end=end,
                count=len(evaluated),
            )
    return NOT_SHOWN


# --- learning rate and memory -----------------------------------------------------------------------------------------


@each_log
def learning_rate_never_arrives(facts: Facts, rows: list[Row]) -> Outcome | None:
    """Fires on zeros throughout, on a long tail of zeros, and on a warm-up that outlasts a finished run."""
    rates = points(rows, "learning_rate")
    if len(rates) < 3 or any(rounded_zero(point.metric) for point in rates):
        return None
    zeros = _zeros_at_end(rates)
    # A schedule may well end in one or two zeros.
    if zeros >= 5 and zeros >= 0.2 * len(rates) and not _steps_are_skipped(facts):
        return _zero_rate(rates, zeros)
    target, top = configured(facts, "learning_rate"), max(values(rates))
    rising = all(a.value <= b.value for a, b in pairwise(rates))
    if target is None or not rising or not 0 < top < 0.5 * target or not _is_finished(facts, rows):
        return None
    return fires(
        rates[0].span,
        rates[-1].span,
        what_en=f"rises to the last row and reaches {top:.3g} of {target:.3g}",
        what_zh=f"到最后一行仍在上升，只到 {top:.3g}，目标是 {target:.3g}",
    )


def _zero_rate(rates: Sequence[Point], zeros: int) -> Outcome:
    first = rates[-zeros]
    en, zh = first.where
    if zeros == len(rates):
        what = f"is exactly 0 in all {zeros} rows", f"在全部 {zeros} 行里恰好为 0"
    else:
        what = (
            f"is exactly 0 from {en} on, in {zeros} of {len(rates)} rows",
            f"从{zh}起恰好为 0，{len(rates)} 行中占 {zeros} 行",
        )
    return fires(first.span, rates[-1].span, what_en=what[0], what_zh=what[1])


def _zeros_at_end(rates: Sequence[Point]) -> int:
    return next((count for count, point in enumerate(reversed(rates)) if point.value != 0), len(rates))


def _steps_are_skipped(facts: Facts) -> bool:
    """The Trainer logs a rate of 0 while DeepSpeed skips steps, whose cause has its own rule."""
    return facts.evidence.has("loss_scale_collapse") or facts.evidence.has("grad_norm_nan")


def _is_finished(facts: Facts, rows: Sequence[Row]) -> bool:
    """Whether the summary row of a finished run is logged, or the configured epochs or steps are over."""
    if any("train_loss" in row.metrics or "train_runtime" in row.metrics for row in facts.evidence.rows):
        return True
    epochs, steps, last = configured(facts, "epochs"), configured(facts, "max_steps"), rows[-1]
    epoch = last.metrics.get("epoch")
    if epochs is not None and epoch is not None and epochs > 0:
        return epoch.value >= 0.98 * epochs
    return steps is not None and steps > 0 and last.step is not None and last.step >= 0.98 * steps


@each_log
def memory_only_rises(facts: Facts, rows: list[Row]) -> Outcome | None:
    """Fires if a running maximum grew by a tenth with plateaus; silent if memory ran out or grows steadily."""
    if facts.evidence.has("oom"):
        return None
    for name in MEMORY_MAXIMA:
        memory = points(rows, name)
        if len(memory) < 5 or any(a.value > b.value for a, b in pairwise(memory)):
            continue
        begin, end = memory[0], memory[-1]
        if _grows_steadily(values(memory)):  # a leak that happens to be logged as a maximum
            return None
        if end.value >= 1.1 * begin.value > 0:
            return fires(begin.span, end.span, name=name, begin=begin.value, end=end.value)
    return None


def _grows_steadily(numbers: Sequence[float]) -> bool:
    """Whether nearly every row is higher than the one before, at a rate that does not slow down."""
    rises = [after - before for before, after in pairwise(numbers)]
    half = len(rises) // 2
    if len(rises) < 5 or sum(rise > 0 for rise in rises) < 0.8 * len(rises):
        return False
    return sum(rises[-half:]) >= 0.7 * sum(rises[:half])


def _is_rl(rows: Sequence[Row]) -> bool:
    return any(is_rl(row) for row in rows)


def _is_supervised(rows: Sequence[Row]) -> bool:
    return not _is_rl(rows) and not any("rewards/margins" in row.metrics for row in rows)
