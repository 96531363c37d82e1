"""Signals of a run; those in the numbers of its log are found here.

`data/signals.toml` explains each kind and holds the thresholds. Rows are judged per text and layout (a pasted log and
a copied line are two series). Each kind is reported at most once per metric, at its first place. "Flat", "stuck" and
"diverging" are not judged inside a learning-rate warm-up: rows whose learning rate is under ``warmup_share`` of the
peak do not count, and a rate that still rises at the end leaves the question open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from trainmedic.kb.model.evidence import Metric, Row, Signal, Traceback
from trainmedic.kb.model.report import Text
from trainmedic.kb.parse.logs import loss_scale, messages
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
from trainmedic.kb.parse.logs.signal_kinds import BENIGN, OBSERVED, THRESHOLDS
from trainmedic.kb.parse.source import Piece

Candidate = tuple[str, Row, Metric, Text]
"""Kind, row, offending metric and what was observed."""


_AT = THRESHOLDS


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
        candidates.extend(loss_scale.signals(piece, rows))
    candidates.extend(stated)
    unique: dict[tuple[str, object, bool], Signal] = {}
    for signal in candidates:
        unique.setdefault((signal.kind, signal.span, signal.stated), signal)
    results = list(unique.values())
    skipped: set[str | None] = {s.span.attachment for s in results if s.kind == "steps_skipped"}
    if skipped:  # a skipped step repeats the rate and the norm of the one before, which are 0 at the start
        skipped.add(None)  # what the user says of it
        results = [s for s in results if s.kind not in loss_scale.REPEATED or s.span.attachment not in skipped]
    logged = [row for row in rows if row.style != "user"]  # a number quoted in a sentence is not a log
    if logged and not any(s.kind not in BENIGN for s in results) and all(finite_except(row) for row in rows):
        row = logged[-1]
        observed = _observed("healthy", rows=len(logged))
        results.append(Signal(kind="healthy_log", span=row.span, step=row.step, observed=observed))
    return tuple(sorted(results, key=lambda s: (s.span.order, s.kind, s.stated)))


def _observed(key: str, **values: object) -> Text:
    return Text(**{language: text.format(**values) for language, text in OBSERVED[key].items()})


def _beyond(what: str, value: float, bound: float) -> Text:
    """A value on the wrong side of a bound."""
    return _observed("over" if value > bound else "below", what=what, value=value, bound=bound)


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
                observed = _observed("not_finite", what=name, value=metric.value)
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
            yield "loss_zero_grad_norm_nan", row, norm, _observed("hidden_nan")
        elif loss is not None and norm is not None and loss.value == norm.value == 0 and not is_rl(row):
            yield "loss_zero", row, loss, _observed("both_zero")
    yield from _consecutive(rows, "loss", "loss_zero", _zero_loss, _observed("zero", what="loss"))
    if all(metric.value == 0 for metric in series(rows, "loss")):  # a resumed run may have no steps left to average
        yield from _consecutive(rows, "train_loss", "loss_zero", _zero_loss, _observed("average_zero"), least=1)
    still = _observed("zero", what="grad_norm")
    yield from _consecutive(rows, "grad_norm", "grad_norm_zero", lambda m, r: _zero(m, r) and not _first_step(r), still)
    stopped, least = _observed("zero", what="learning_rate"), 2 if len(series(rows, "learning_rate")) == 2 else 3
    yield from _consecutive(rows, "learning_rate", "learning_rate_zero", _zero, stopped, least=least)
    yield from _consecutive(rows, "reward_std", "reward_std_zero", _zero, _observed("same_rewards"))
    equal = _observed("equal_groups")
    yield from _consecutive(rows, "frac_reward_zero_std", "reward_std_zero", lambda m, _: m.value >= 0.95, equal)
    kl = finite(series(rows, "kl"))
    if len(kl) >= 3 and all(m.value == 0 and not rounded_zero(m) for m in kl):
        row = next(row for row in rows if row.metrics.get("kl") is kl[0])
        yield "kl_zero", row, kl[0], _observed("kl_zero", rows=len(kl))


def _zero_loss(metric: Metric, row: Row) -> bool:
    return metric.value == 0 and not is_rl(row)


def _first_step(row: Row) -> bool:
    """Whether a row is of the very first step, in which a warm-up has moved nothing."""
    epoch, rate = row.metrics.get("epoch"), row.metrics.get("learning_rate")
    begins = row.step in (0, 1) or (row.step is None and epoch is not None and epoch.value == 0)
    return begins or (rate is not None and rate.value == 0)


def _zero(metric: Metric, _: Row) -> bool:
    return metric.value == 0 and not rounded_zero(metric)


def _consecutive(
    rows: Sequence[Row], name: str, kind: str, test: Callable[[Metric, Row], bool], observed: Text, *, least: int = 2
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
                observed = _observed("consecutive", en=observed.en, zh=observed.zh, rows=least)
            yield kind, run[0][0], run[0][1], observed
            return


def _levels(rows: Sequence[Row]) -> Iterator[Candidate]:
    for row in rows:
        for name, metric in row.metrics.items():
            value, kind, bound = metric.value, "", ""
            if not math.isfinite(value):
                continue
            if name.startswith("logits/") and abs(value) > _AT["logits_huge"]:
                yield "logits_huge", row, metric, _beyond(f"|{name}|", abs(value), _AT["logits_huge"])
            elif name == "loss" and value < 0 and not is_rl(row):
                yield "loss_negative", row, metric, _beyond("loss", value, 0)
            elif name == "kl" and value < _AT["kl_negative"]:
                kind = bound = "kl_negative"
            elif name == "kl" and value > _AT["kl_huge"]:
                kind = bound = "kl_huge"
            elif name in LOSSES and value > _AT["loss_huge"]:
                kind, bound = "loss_diverging", "loss_huge"
            elif (
                name == "loss" and value > _AT["loss_large"] and not is_rl(row) and "rewards/chosen" not in row.metrics
            ):
                kind, bound = "loss_huge", "loss_large"
            elif name == "grad_norm" and value > _AT["grad_norm_large"]:
                kind, bound = "grad_norm_huge", "grad_norm_large"
            if kind:
                yield kind, row, metric, _beyond(name, value, _AT[bound])


def _points(rows: Sequence[Row], name: str) -> list[tuple[Row, Metric]]:
    return [(row, row.metrics[name]) for row in rows if name in row.metrics and math.isfinite(row.metrics[name].value)]


def _spikes(rows: Sequence[Row]) -> Iterator[Candidate]:
    for name, kind, factor, floor in (
        ("grad_norm", "grad_norm_spike", _AT["spike_factor"], 1.0),
        ("loss", "loss_spike", _AT["loss_spike_factor"], 0.1),
    ):
        points = _points(rows, name)
        if len(points) < _AT["some_points"] or (name == "loss" and any(is_rl(row) for row, _ in points)):
            continue
        values = [metric.value for _, metric in points]
        centre = median(values)
        bar = max(factor * centre, centre + 10 * spread(values), floor)
        for i, (row, metric) in enumerate(points):
            before, after = values[max(0, i - 3) : i], values[i + 1 : i + 4]
            alone = name == "grad_norm" or (before and after and median(before) < bar and median(after) < bar)
            if metric.value > bar and alone:
                observed = _observed("spike", what=name, value=metric.value, rows=len(values), median=centre)
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
        if "learning_rate" not in row.metrics or row.metrics["learning_rate"].value >= _AT["warmup_share"] * top
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
    decayed = highest > rate.value and highest >= _AT["warmup_share"] * top  # past its peak
    if rising:
        yield "lr_in_warmup", row, rate, _observed("rising", value=rate.value)
    elif 0 < rate.value < _AT["warmup_share"] * top and not decayed:
        yield "lr_in_warmup", row, rate, _observed("warmup", value=rate.value, share=rate.value / top, top=top)


def _trends(rows: Sequence[Row], rising: bool) -> Iterator[Candidate]:
    """Flat, stuck, diverging: only outside the warm-up and, for the loss, not in on-policy training."""
    points = [] if rising else [(row, m) for row, m in _points(rows, "loss") if not is_rl(row)]
    values = [metric.value for _, metric in points]
    equal = len(values) >= 3 and len(set(values)) == 1 and values[0] != 0
    if len(values) >= _AT["many_points"] or equal:
        begin, end = _ends(values)
        if abs(end - begin) <= _AT["flat_share"] * abs(begin) and begin != 0:
            yield "loss_flat", *points[-1], _observed("flat", begin=begin, end=end, rows=len(values))
    if len(values) >= _AT["some_points"]:
        lowest = min(median(values[i : i + 3]) for i in range(len(values) - 2))
        end = median(values[-max(3, len(values) // 4) :])
        if lowest > 0 and end > 1.5 * lowest and end > values[0] * 1.1:
            yield "loss_diverging", *points[-1], _observed("above_lowest", end=end, lowest=lowest)
    accuracy = [] if rising else _points(rows, "rewards/accuracies")
    if len(accuracy) >= _AT["many_points"]:
        later = [metric.value for _, metric in accuracy[len(accuracy) // 2 :]]
        if abs(median(later) - 0.5) <= 0.05:
            yield "accuracy_stuck", *accuracy[-1], _observed("accuracy", median=median(later))
    margins = _points(rows, "rewards/margins")
    if len(margins) >= _AT["few_points"]:
        begin, end = _ends([metric.value for _, metric in margins])
        if end > begin + max(0.2 * abs(begin), 0.01):
            yield "margins_rising", *margins[-1], _observed("moved", what="rewards/margins", begin=begin, end=end)


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
        if len(points) < _AT["few_points"]:
            continue
        values = [metric.value for _, metric in points]
        begin, end = median(values[:3]), median(values[-3:])
        if begin > 0 and (end < low * begin or end > high * begin):
            yield kind, *points[-1], _observed("moved", what=name, begin=begin, end=end)
    entropy = [(row, metric) for row, metric in _points(rows, "entropy") if is_rl(row)]
    if 0 < len(entropy) < _AT["few_points"] and all(abs(metric.value) < _AT["entropy_none"] for _, metric in entropy):
        yield "entropy_collapse", *entropy[-1], _observed("entropy", value=entropy[-1][1].value)
    for name, kind in (("clip_ratio", "clip_ratio_high"), ("clipped_ratio", "never_stops")):
        bound = _AT[f"{name}_high"]
        yield from _consecutive(rows, name, kind, _over(bound), _observed(kind, bound=bound))


def _over(bound: float) -> Callable[[Metric, Row], bool]:
    return lambda metric, _: metric.value > bound


def _reward(rows: Sequence[Row]) -> Iterator[Candidate]:
    points = _points(rows, "reward")
    values = [metric.value for _, metric in points]
    if len(values) >= _AT["many_points"] and max(values) - min(values) <= 0.02 * max(abs(median(values)), 0.01):
        yield "reward_flat", *points[-1], _observed("reward_flat", level=median(values), rows=len(values))
    if len(values) >= _AT["some_points"]:
        best = max(median(values[i : i + 3]) for i in range(len(values) - 2))
        end = median(values[-3:])
        if best > 0 and end < 0.5 * best:
            yield "reward_collapse", *points[-1], _observed("below_best", end=end, best=best)
