"""Slowness that users state."""

from __future__ import annotations

from tests.every_case import every_case
from tests.parse.reading import true_span
from trainmedic.kb.parse.pipeline import parse


@every_case(
    "text",
    [
        "it went from 39 → 500 s/it", "from 2s to 40s per step", "a step takes 30 s to 5 min now",
        "a step takes 500 ms to 5 s now", "10x slower than the other", "训练慢了10倍", "比单卡慢 10 倍",
        "throughput drops from 3000 tok/s to 200 tok/s", "每步从 2秒 变成 40秒",
    ],
)  # fmt: skip
def test_a_slowdown_is_a_stated_signal_with_its_place(text: str) -> None:
    *_, signal = parse(text).signals
    assert (signal.kind, signal.stated) == ("throughput_drop", True)
    assert true_span(signal.span, text)


@every_case(
    "text",
    [
        "lr from 1e-4 to 1e-5", "from step 10 to 200 the loss is fine", "transformers from 4.44 to 4.46",
        "it is not 10x slower", "8x A100, epoch 1 to 3", "gpu memory utilization 0.6 -> 0.3", "6x faster",
        "loss 在 0.7 到 1.6 之间", "memory grows from 20GB to 80GB", "grad norm is 3x larger than in OpenRLHF",
        "loss 8 instead of 2", "from 40s to 2s per step", "from 2.0 s to 2.5 s per step",
        "from 0 s to 40 s per step", "每步在 10 秒到 20 秒之间",
    ],
)  # fmt: skip
def test_settings_ranges_denials_and_other_changes_are_no_slowdown(text: str) -> None:
    assert not parse(text).has("throughput_drop")


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
