"""Signals of a run; those in the numbers of its log are found here.

`kb.parse.logs.signal_kinds` explains each kind and holds the thresholds. Rows are judged per text and layout (a
pasted log and a copied line are two series). Each kind is reported at most once per metric, at its first place. "Flat",
"stuck" and "diverging" are not judged inside a learning-rate warm-up: rows whose learning rate is under `WARMUP_SHARE`
of the peak do not count, and a rate that still rises at the end leaves the question open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from trainmedic.kb.model.evidence import Metric, Row, Signal, Traceback
from trainmedic.kb.model.report import Text
from trainmedic.kb.parse.logs import messages
from trainmedic.kb.parse.logs.metrics import (
    LENGTHS,
    LOSSES,
    finite,
    finite_except,
    is_rl,
    median,
    rounded_zero,
    series,
    spread,
)
from trainmedic.kb.parse.logs.signal_kinds import (
    BENIGN,
    CLIP_RATIO_HIGH,
    CLIPPED_RATIO_HIGH,
    ENTROPY_NONE,
    FEW_POINTS,
    FLAT_SHARE,
    GRAD_NORM_LARGE,
    KL_HUGE,
    KL_NEGATIVE,
    LOGITS_HUGE,
    LOSS_HUGE,
    LOSS_LARGE,
    LOSS_SPIKE_FACTOR,
    MANY_POINTS,
    SOME_POINTS,
    SPIKE_FACTOR,
    WARMUP_SHARE,
)
from trainmedic.kb.parse.source import Piece

Candidate = tuple[str, Row, Metric, Text]
"""Kind, row, offending metric and what was observed."""


_HIDDEN_NAN = Text(en="loss 0 and grad_norm NaN in one row", zh="同一行里 loss 为 0、grad_norm 为 NaN")
_BOTH_ZERO = Text(en="loss and grad_norm are exactly 0 in one row", zh="同一行里 loss 和 grad_norm 恰好都是 0")
_SAME_REWARDS = Text(en="rewards within a group do not differ", zh="组内奖励没有差别")


def signals(
    rows: Sequence[Row],
    tracebacks: Sequence[Traceback] = (),
    pieces: Sequence[Piece] = (),
    stated: Iterable[Signal] = (),
    *,
    peak_learning_rate: float | None = None,
) -> tuple[Signal, ...]:
    """Every signal, ordered by place and kind.

    ``pieces`` are the texts of logs, ``stated`` the signals that the user reports in prose. ``peak_learning_rate`` is
    the configured one if known; otherwise the highest logged rate is used.
    """
    candidates: list[Signal] = []
    for group in _groups(rows):
        for kind, row, metric, observed in _judge(group, peak_learning_rate):
            candidates.append(Signal(kind=kind, span=metric.span, value=metric.value, step=row.step, observed=observed))
    candidates.extend(messages.of_tracebacks(tracebacks))
    for piece in pieces:
        candidates.extend(messages.in_log(piece))
    candidates.extend(stated)
    unique: dict[tuple[str, object, bool], Signal] = {}
    for signal in candidates:
        unique.setdefault((signal.kind, signal.span, signal.stated), signal)
    results = list(unique.values())
    logged = [row for row in rows if row.style != "user"]  # a number quoted in a sentence is no log
    if logged and not any(s.kind not in BENIGN for s in results) and all(finite_except(row) for row in rows):
        row = logged[-1]
        results.append(
            Signal(
                kind="healthy_log",
                span=row.span,
                step=row.step,
                observed=_text(f"{len(logged)} rows, all finite", f"共 {len(logged)} 行，数值都正常"),
            )
        )
    return tuple(sorted(results, key=lambda s: (s.span.order, s.kind, s.stated)))


def _text(en: str, zh: str) -> Text:
    return Text(en=en, zh=zh)


def _moved(what: str, begin: float, end: float) -> Text:
    return _text(f"{what} goes from {begin:g} to {end:g}", f"{what} 从 {begin:g} 变为 {end:g}")


def _ended(what: str, end: float, extreme: Text, level: float) -> Text:
    return _text(
        f"{what} ends at {end:g}, its {extreme.en} level was {level:g}",
        f"{what} 末段为 {end:g}，{extreme.zh}时为 {level:g}",
    )


def _exactly_zero(what: str) -> Text:
    return _text(f"{what} is exactly 0", f"{what} 恰好为 0")


def _beyond(what: str, value: float, bound: float) -> Text:
    """A value on the wrong side of a bound."""
    side = ("over", "超过") if value > bound else ("below", "低于")
    return _text(f"{what} is {value:g}, {side[0]} {bound:g}", f"{what} 为 {value:g}，{side[1]} {bound:g}")


def _groups(rows: Sequence[Row]) -> list[list[Row]]:
    groups: dict[tuple[str | None, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.span.attachment, row.style), []).append(row)
    return list(groups.values())


def _judge(rows: list[Row], peak: float | None) -> Iterator[Candidate]:
    seen: set[tuple[str, str]] = set()
    settled, rising = _settled(rows, peak)
    checks: tuple[Iterator[Candidate], ...] = (
        _not_finite(rows),
        _zeros(rows),
        _levels(rows),
        _spikes(rows),
        _warmup(rows, peak, rising),
        _trends(settled, rising),
        _policy(rows),
    )
    for check in checks:
        for kind, row, metric, observed in check:
            if (kind, metric.name) not in seen:
                seen.add((kind, metric.name))
                yield kind, row, metric, observed


def _not_finite(rows: Sequence[Row]) -> Iterator[Candidate]:
    for row in rows:
        for name, metric in row.metrics.items():
            subject = "" if math.isfinite(metric.value) else _subject(name)
            if subject:
                # Only the loss and the gradient norm tell infinite from NaN.
                infinite = math.isinf(metric.value) and subject in ("loss", "grad_norm")
                observed = _text(f"{name} is {metric.value}", f"{name} 为 {metric.value}")
                yield f"{subject}_{'inf' if infinite else 'nan'}", row, metric, observed


def _subject(name: str) -> str:
    """The first part of the signal kind for a metric that is not finite; empty if it is harmless."""
    if name.startswith("eval_"):  # other evaluation metrics are NaN if a class is missing from the sample
        return "eval_loss" if name.endswith("loss") else ""
    if name in LOSSES or name == "kl_loss":
        return "loss"
    if name.endswith("grad_norm"):
        return "grad_norm"
    if name in ("reward", "score", "reward_std") or name.startswith("rewards/"):
        return "reward"
    if name in ("kl", "ppo_kl"):
        return "kl"
    return "nll_loss" if name == "nll_loss" else next((s for s in ("logps", "logits") if name.startswith(f"{s}/")), "")


def _zeros(rows: Sequence[Row]) -> Iterator[Candidate]:
    for row in rows:
        loss, norm = row.metrics.get("loss"), row.metrics.get("grad_norm")
        if loss is not None and norm is not None and loss.value == 0 and math.isnan(norm.value):
            yield "loss_zero_grad_norm_nan", row, norm, _HIDDEN_NAN
        elif loss is not None and norm is not None and loss.value == norm.value == 0 and not is_rl(row):
            yield "loss_zero", row, loss, _BOTH_ZERO
    yield from _consecutive(
        rows, "loss", 2, lambda m, row: m.value == 0 and not is_rl(row), "loss_zero", _exactly_zero("loss")
    )
    if all(metric.value == 0 for metric in series(rows, "loss")):  # a resumed run may have no steps left to average
        average = _text("the average loss of the whole run is exactly 0", "整个训练的平均 loss 恰好为 0")
        yield from _consecutive(
            rows, "train_loss", 1, lambda m, row: m.value == 0 and not is_rl(row), "loss_zero", average
        )
    yield from _consecutive(
        rows,
        "grad_norm",
        2,
        lambda m, row: _zero(m, row) and not _first_step(row),
        "grad_norm_zero",
        _exactly_zero("grad_norm"),
    )
    rates = series(rows, "learning_rate")
    least = 2 if len(rates) == 2 else 3
    yield from _consecutive(rows, "learning_rate", least, _zero, "learning_rate_zero", _exactly_zero("learning_rate"))
    yield from _consecutive(rows, "reward_std", 2, _zero, "reward_std_zero", _SAME_REWARDS)
    yield from _consecutive(
        rows,
        "frac_reward_zero_std",
        2,
        lambda m, _: m.value >= 0.95,
        "reward_std_zero",
        _text("nearly all groups have equal rewards", "几乎所有组内奖励都相同"),
    )
    kl = finite(series(rows, "kl"))
    if len(kl) >= 3 and all(m.value == 0 and not rounded_zero(m) for m in kl):
        row = next(row for row in rows if row.metrics.get("kl") is kl[0])
        yield "kl_zero", row, kl[0], _text(f"kl is 0 in all {len(kl)} rows", f"全部 {len(kl)} 行的 kl 都是 0")


def _first_step(row: Row) -> bool:
    """Whether a row is of the very first step, in which a warm-up has moved nothing."""
    epoch, rate = row.metrics.get("epoch"), row.metrics.get("learning_rate")
    begins = row.step in (0, 1) or (row.step is None and epoch is not None and epoch.value == 0)
    return begins or (rate is not None and rate.value == 0)


def _zero(metric: Metric, _: Row) -> bool:
    return metric.value == 0 and not rounded_zero(metric)


def _consecutive(
    rows: Sequence[Row], name: str, least: int, test: Callable[[Metric, Row], bool], kind: str, observed: Text
) -> Iterator[Candidate]:
    """The first stretch of at least ``least`` rows having ``name`` for which ``test`` holds.

    Where two are needed a single row is enough if the log has no other: it was copied for what it shows.
    """
    if least == 2 and name != "loss" and len(series(rows, name)) == 1:
        least = 1
    run: list[tuple[Row, Metric]] = []
    for row in rows:
        metric = row.metrics.get(name)
        if metric is None:
            continue
        run = [*run, (row, metric)] if test(metric, row) else []
        if len(run) >= least:
            if least > 1:
                observed = _text(f"{observed.en} in {least} consecutive rows", f"{observed.zh}（连续 {least} 行）")
            yield kind, run[0][0], run[0][1], observed
            return


def _levels(rows: Sequence[Row]) -> Iterator[Candidate]:
    for row in rows:
        for name, metric in row.metrics.items():
            value = metric.value
            if not math.isfinite(value):
                continue
            if name.startswith("logits/") and abs(value) > LOGITS_HUGE:
                yield "logits_huge", row, metric, _beyond(f"|{name}|", abs(value), LOGITS_HUGE)
            elif name == "kl" and value < KL_NEGATIVE:
                yield "kl_negative", row, metric, _beyond("kl", value, KL_NEGATIVE)
            elif name == "kl" and value > KL_HUGE:
                yield "kl_huge", row, metric, _beyond("kl", value, KL_HUGE)
            elif name in LOSSES and value > LOSS_HUGE:
                yield "loss_diverging", row, metric, _beyond(name, value, LOSS_HUGE)
            elif name == "loss" and value < 0 and not is_rl(row):
                yield "loss_negative", row, metric, _beyond("loss", value, 0)
            elif name == "loss" and value > LOSS_LARGE and not is_rl(row) and "rewards/chosen" not in row.metrics:
                yield "loss_huge", row, metric, _beyond("loss", value, LOSS_LARGE)
            elif name == "grad_norm" and value > GRAD_NORM_LARGE:
                yield "grad_norm_huge", row, metric, _beyond("grad_norm", value, GRAD_NORM_LARGE)


def _points(rows: Sequence[Row], name: str) -> list[tuple[Row, Metric]]:
    return [(row, row.metrics[name]) for row in rows if name in row.metrics and math.isfinite(row.metrics[name].value)]


def _spikes(rows: Sequence[Row]) -> Iterator[Candidate]:
    for name, kind, factor, floor in (
        ("grad_norm", "grad_norm_spike", SPIKE_FACTOR, 1.0),
        ("loss", "loss_spike", LOSS_SPIKE_FACTOR, 0.1),
    ):
        points = _points(rows, name)
        if len(points) < SOME_POINTS or (name == "loss" and any(is_rl(row) for row, _ in points)):
            continue
        values = [metric.value for _, metric in points]
        centre = median(values)
        bar = max(factor * centre, centre + 10 * spread(values), floor)
        for i, (row, metric) in enumerate(points):
            before, after = values[max(0, i - 3) : i], values[i + 1 : i + 4]
            alone = name == "grad_norm" or (before and after and median(before) < bar and median(after) < bar)
            if metric.value > bar and alone:
                observed = _text(
                    f"{name} is {metric.value:g}, the median of {len(values)} rows {centre:g}",
                    f"{name} 为 {metric.value:g}，{len(values)} 行的中位数是 {centre:g}",
                )
                yield kind, row, metric, observed
                break


def _settled(rows: list[Row], peak: float | None) -> tuple[list[Row], bool]:
    """The rows outside the warm-up, and whether the learning rate still rises at the end: then nothing is judged."""
    rates = [metric.value for _, metric in _points(rows, "learning_rate")]
    top = peak if peak is not None and peak > 0 else max(rates, default=0.0)
    if top <= 0:
        return rows, False
    settled = [
        row
        for row in rows
        if "learning_rate" not in row.metrics or row.metrics["learning_rate"].value >= WARMUP_SHARE * top
    ]
    rising = len(rates) >= 2 and all(a < b for a, b in pairwise(rates))
    reached = peak is not None and bool(rates) and rates[-1] >= 0.99 * peak
    return settled, rising and not reached


def _warmup(rows: Sequence[Row], peak: float | None, rising: bool) -> Iterator[Candidate]:
    points = _points(rows, "learning_rate")
    if not points:
        return
    row, rate = points[-1]
    top = peak if peak is not None and peak > 0 else max(metric.value for _, metric in points)
    highest = max(metric.value for _, metric in points)
    decayed = highest > rate.value and highest >= WARMUP_SHARE * top  # past its peak
    if rising:
        yield (
            "lr_in_warmup",
            row,
            rate,
            _text(f"learning_rate still rises: {rate.value:g}", f"learning_rate 还在上升：{rate.value:g}"),
        )
    elif 0 < rate.value < WARMUP_SHARE * top and not decayed:
        share = f"{rate.value / top:.1%}"
        observed = _text(
            f"learning_rate is {rate.value:g}, {share} of {top:g}",
            f"learning_rate 为 {rate.value:g}，是 {top:g} 的 {share}",
        )
        yield "lr_in_warmup", row, rate, observed


def _trends(rows: Sequence[Row], rising: bool) -> Iterator[Candidate]:
    """Flat, stuck, diverging: only outside the warm-up and, for the loss, not in on-policy training."""
    points = [] if rising else [(row, m) for row, m in _points(rows, "loss") if not is_rl(row)]
    values = [metric.value for _, metric in points]
    equal = len(values) >= 3 and len(set(values)) == 1 and values[0] != 0
    if len(values) >= MANY_POINTS or equal:
        begin, end = _ends(values)
        if abs(end - begin) <= FLAT_SHARE * abs(begin) and begin != 0:
            observed = _text(
                f"loss goes from {begin:g} to {end:g} over {len(values)} rows",
                f"{len(values)} 行里 loss 从 {begin:g} 到 {end:g}",
            )
            yield "loss_flat", *points[-1], observed
    if len(values) >= SOME_POINTS:
        lowest = min(median(values[i : i + 3]) for i in range(len(values) - 2))
        end = median(values[-max(3, len(values) // 4) :])
        if lowest > 0 and end > 1.5 * lowest and end > values[0] * 1.1:
            yield "loss_diverging", *points[-1], _ended("loss", end, _text("lowest", "最低"), lowest)
    accuracy = [] if rising else _points(rows, "rewards/accuracies")
    if len(accuracy) >= MANY_POINTS:
        later = [metric.value for _, metric in accuracy[len(accuracy) // 2 :]]
        if abs(median(later) - 0.5) <= 0.05:
            observed = _text(
                f"the median accuracy of the later half is {median(later):g}",
                f"后半段准确率的中位数是 {median(later):g}",
            )
            yield "accuracy_stuck", *accuracy[-1], observed
    margins = _points(rows, "rewards/margins")
    if len(margins) >= FEW_POINTS:
        begin, end = _ends([metric.value for _, metric in margins])
        if end > begin + max(0.2 * abs(begin), 0.01):
            yield "margins_rising", *margins[-1], _moved("rewards/margins", begin, end)


def _ends(values: Sequence[float]) -> tuple[float, float]:
    third = max(1, len(values) // 3)
    return median(values[:third]), median(values[-third:])


def _policy(rows: Sequence[Row]) -> Iterator[Candidate]:
    yield from _reward(rows)
    for name, kind, low, high in (
        ("entropy", "entropy_collapse", 0.1, math.inf),
        *((name, "length_collapse", 0.3, math.inf) for name in LENGTHS),
        *((name, "length_explosion", 0.0, 2.5) for name in LENGTHS),
        *(
            (name, "throughput_drop", 0.5, math.inf)
            for name in ("train_speed(iter/s)", "perf/throughput", "tokens_per_second")
        ),
    ):
        points = _points(rows, name)
        if len(points) < FEW_POINTS:
            continue
        values = [metric.value for _, metric in points]
        begin, end = median(values[:3]), median(values[-3:])
        if begin > 0 and (end < low * begin or end > high * begin):
            yield kind, *points[-1], _moved(name, begin, end)
    entropy = [(row, metric) for row, metric in _points(rows, "entropy") if is_rl(row)]
    if 0 < len(entropy) < FEW_POINTS and all(abs(metric.value) < ENTROPY_NONE for _, metric in entropy):
        last = entropy[-1][1].value
        yield "entropy_collapse", *entropy[-1], _text(f"entropy is {last:g}", f"entropy 为 {last:g}")
    high_share = _text(
        f"over {CLIP_RATIO_HIGH:.0%} of the ratios are clipped", f"超过 {CLIP_RATIO_HIGH:.0%} 的比率被裁剪"
    )
    yield from _consecutive(
        rows, "clip_ratio", 2, lambda m, _: m.value > CLIP_RATIO_HIGH, "clip_ratio_high", high_share
    )
    cut_share = _text(
        f"over {CLIPPED_RATIO_HIGH:.0%} of the completions are cut off", f"超过 {CLIPPED_RATIO_HIGH:.0%} 的生成被截断"
    )
    yield from _consecutive(
        rows, "clipped_ratio", 2, lambda m, _: m.value > CLIPPED_RATIO_HIGH, "never_stops", cut_share
    )


def _reward(rows: Sequence[Row]) -> Iterator[Candidate]:
    points = _points(rows, "reward")
    values = [metric.value for _, metric in points]
    if len(values) >= MANY_POINTS and max(values) - min(values) <= 0.02 * max(abs(median(values)), 0.01):
        level = f"{median(values):g}"
        observed = _text(
            f"reward stays at {level} over {len(values)} rows", f"{len(values)} 行里 reward 一直是 {level} 左右"
        )
        yield "reward_flat", *points[-1], observed
    if len(values) >= SOME_POINTS:
        best = max(median(values[i : i + 3]) for i in range(len(values) - 2))
        end = median(values[-3:])
        if best > 0 and end < 0.5 * best:
            yield "reward_collapse", *points[-1], _ended("reward", end, _text("best", "最好"), best)
