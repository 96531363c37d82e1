"""Settings that sentences state, and values that they only speak of."""

from __future__ import annotations

from tests.every_case import every_case
from tests.parse.reading import true_span
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.parse.said import settings
from trainmedic.kb.parse.source import Piece


def stated(text: str) -> dict[str, object]:
    found = settings.read(Piece(source=None, text=text))
    assert all(true_span(one.span, text) for one in found)
    return {one.name: one.value for one in found}


@every_case(
    ("text", "expected"),
    [
        ("8×A100, batch 4, lr 1e-5 with warmup 3 %, turned gradient checkpointing off, no change",
         {"micro_batch": 4, "learning_rate": 1e-5, "warmup_ratio": 0.03, "gradient_checkpointing": False}),
        ("用 8 卡 A800，bs 设 4，学习率 1e-5，关了梯度检查点也没用",
         {"micro_batch": 4, "learning_rate": 1e-5, "gradient_checkpointing": False}),
        ("I changed the learning rate from 2e-4 to 2e-5", {"learning_rate": 2e-5}),
        ("学习率一开始 1e-5，后来改成 1e-4", {"learning_rate": 1e-4}),
        ("batch_size 设为 16 可以跑，设为 32 就 OOM", {"micro_batch": 32}),
        ("ZeRO-2 trains normally, ZeRO-3 hangs", {"zero_stage": 3}),
        ("nan in fp16 but not in bf16", {"fp16": True}),
        ("warmup 100 steps, 3 epochs, eval every 50 steps", {"warmup_steps": 100, "epochs": 3, "eval_steps": 50}),
        ("with packing and padding_free", {"packing": True, "padding_free": True}),
        ("optimizer adamw_torch, device_map auto", {"optimizer": "adamw_torch", "device_map": "auto"}),
        ("QLoRA, rank 64", {"tuner": "lora", "load_in_4bit": True, "lora_rank": 64}),
        ("then I call model.gradient_checkpointing_enable()", {"gradient_checkpointing": True}),
        ("packing + FSDP hangs", {"packing": True}),
        ("lr 1e-4, then set it to 0", {"learning_rate": 1e-4}),
    ],
)  # fmt: skip
def test_a_value_in_effect_is_read(text: str, expected: dict[str, object]) -> None:
    assert stated(text) == expected


@every_case(
    "text",
    [
        "Should I set warmup_ratio to 0.1 and the learning rate to 5e-6?", "the docs say to use batch size 8",
        "someone suggested gradient checkpointing, I have not tried that yet", "and without packing?",
        "网上说把 warmup 加大、学习率降到 5e-6，还没试", "I used to train with lr 1e-4",
        "it takes less than with batch size 8",
        "GPU 0 is full and rank 1 waits", "NCCL_TIMEOUT=7200", "lr 1e-5, 1e-6 and 1e-7", "after the first 2 epochs",
        "{'loss': 0.3, 'learning_rate': 5e-06}", "a LoRA adapter", "It works without packing", "lr decays to 0",
        "lr 0", "batch 4 %", "weight decay 1e999", "it waits every 100 steps", "device_map=true",
    ],
)  # fmt: skip
def test_what_is_asked_advised_past_or_something_else_is_no_setting(text: str) -> None:
    assert stated(text) == {}


def test_what_is_said_counts_as_written_where_no_file_says_otherwise() -> None:
    text = "trl SFT, lr 1e-5 and batch size 2"
    facts = Facts(parse(text))
    assert facts.name("micro_batch").value == 2
    assert facts.written("micro_batch").value is True
    assert [span.text for span in facts.name("micro_batch").spans] == ["batch size 2"]
    file = Attachment(name="a.yaml", content="learning_rate: 1e-4\nbf16: true\noutput_dir: o\n")
    assert Facts(parse(text, [file])).name("learning_rate").value == 1e-4


def test_the_name_of_an_option_is_the_frameworks() -> None:
    assert parse("verl GRPO with train_batch_size 512").run.settings["rollout_batch"].value == 512
    assert parse("openrlhf SFT with train_batch_size 512").run.settings["global_batch"].value == 512


def test_a_word_that_names_a_setting_only_beside_others_names_none_alone() -> None:
    assert settings.named("the alpha of LoRA") == ("lora_alpha", "tuner")
    assert settings.named("an alpha release") == ()
