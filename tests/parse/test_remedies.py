"""What users say they tried, and whether it helped."""

from __future__ import annotations

from tests.every_case import every_case
from tests.parse.reading import true_span
from trainmedic.kb.parse.pipeline import parse


@every_case(
    ("text", "setting", "helped"),
    [
        ("I tried lowering the lr / disabling flash attention, no change", "learning_rate", False),
        ("I tried lowering the lr / disabling flash attention, no change", "attention", False),
        ("I tried fp32. Same error.", "weights_dtype", False),
        ("Already set gradient_checkpointing=True.", "gradient_checkpointing", None),
        ("adding --max_grad_norm 0.5 did not help", "max_grad_norm", False),
        ("It works without packing.", "packing", True),
        ("disabling flash attention fixes it", "attention", True),
        ("试过把学习率调小，没用", "learning_rate", False),
        ("把 batch size 调小还是 OOM", "global_batch", False),
        ("关掉 packing 就好了", "packing", True),
        ("不开 gradient checkpointing 就正常", "gradient_checkpointing", True),
        ("调小 batch size 解决不了", "global_batch", False),
        ("有人建议降低学习率，试了没用", "learning_rate", False),
        ("按建议关掉 packing 就好了", "packing", True),
    ],
)
def test_a_remedy_names_its_settings_and_its_outcome(text: str, setting: str, helped: bool | None) -> None:
    (remedy,) = parse(text).remedies
    assert setting in remedy.settings
    assert remedy.concepts
    assert remedy.helped is helped
    assert true_span(remedy.span, text)
    assert remedy.text == remedy.span.text


@every_case(
    "text",
    [
        "可以尝试设置 max_grad_norm=1.0 来缓解 NaN", "建议降低学习率来解决", "disabling packing may fix it",
        "we recommend disabling packing, which fixes it", "should I try lowering the lr?",
        "Would disabling packing fix it?", "有篇文章说把学习率调大可以解决", "With bf16 the loss is nan",
        "CUDA out of memory. Tried to allocate 2 GiB", "removing the blue one fixes it",
    ],
)  # fmt: skip
def test_what_is_only_considered_or_is_no_remedy_is_none(text: str) -> None:
    assert parse(text).remedies == ()


def test_what_worked_until_a_change_is_no_remedy_that_helped() -> None:
    assert parse("it worked until I enabled packing").remedies == ()


def test_what_was_tried_counts_even_if_it_names_no_setting() -> None:
    (remedy,) = parse("I tried everything in the FAQ").remedies
    assert (remedy.settings, remedy.helped) == ((), None)
