"""Changes and differences that users state."""

from __future__ import annotations

import pytest

from tests.every_case import every_case
from tests.parse.reading import true_span
from trainmedic.kb.parse.pipeline import parse


@every_case(
    ("text", "metric", "direction", "factor"),
    [
        ("it went from 39 → 500 s/it", "step_time", "up", 12.8),
        ("from 2s to 40s per step", "step_time", "up", 20),
        ("a step takes 30 s to 5 min now", "step_time", "up", 10),
        ("a step takes 500 ms to 5 s now", "step_time", "up", 10),
        ("10x slower than the other", "step_time", "up", 10),
        ("6x faster", "step_time", "down", 1 / 6),
        ("训练慢了10倍", "step_time", "up", 10),
        ("比单卡慢 10 倍", "step_time", "up", 10),
        ("每步从 2秒 变成 40秒", "step_time", "up", 20),
        ("throughput drops from 3000 tok/s to 200 tok/s", "throughput", "down", 1 / 15),
        ("memory grows from 20GB to 80GB", "memory", "up", 4),
        ("uses 2x more memory than TRL", "memory", "up", 2),
        ("grad norm is 3x larger than in OpenRLHF", "grad_norm", "up", 3),
        ("loss 8 instead of 2", "loss", "up", 4),
        ("kl goes from 0.01 to 35", "kl", "up", 3500),
        ("显存比之前大 3 倍", "memory", "up", 3),
    ],
)
def test_a_comparison_has_a_metric_a_direction_and_a_factor(
    text: str, metric: str, direction: str, factor: float
) -> None:
    (comparison,) = parse(text).comparisons
    assert (comparison.metric, comparison.direction) == (metric, direction)
    assert comparison.factor == pytest.approx(factor, rel=0.01)
    assert true_span(comparison.span, text)


@every_case(
    "text",
    [
        "lr from 1e-4 to 1e-5", "from step 10 to 200 the loss is fine", "transformers from 4.44 to 4.46",
        "it is not 10x slower", "8x A100, epoch 1 to 3", "gpu memory utilization 0.6 -> 0.3",
        "loss 在 0.7 到 1.6 之间", "the loss goes from 2.0 to 2.1", "reward from 0 to 5", "the accuracy is 3x larger",
    ],
)  # fmt: skip
def test_settings_ranges_denials_and_small_changes_are_no_comparison(text: str) -> None:
    assert parse(text).comparisons == ()


def test_a_slowdown_is_a_stated_signal() -> None:
    signals = parse("from 2s to 40s per step").signals
    assert [(signal.kind, signal.stated) for signal in signals] == [("throughput_drop", True)]
    assert not parse("6x faster, from 40s to 2s per step").has("throughput_drop")


@every_case(
    ("text", "kind"),
    [
        ("the bar shows 0/500 and never moves", "hang"), ("it is stuck at 0% forever", "hang"),
        ("进度条一直不动", "hang"), ("卡在 0/100", "hang"), ("training is extremely slow", "throughput_drop"),
        ("训练速度特别慢", "throughput_drop"),
    ],
)  # fmt: skip
def test_no_progress_is_a_hang_and_slowness_a_slowdown(text: str, kind: str) -> None:
    assert parse(text).has(kind)
