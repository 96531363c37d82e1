"""The number of processes that is said or printed, and the model and card that a question names."""

from __future__ import annotations

from tests.every_case import every_case
from tests.parse.reading import true_span
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse


def world(text: str, **files: str) -> object:
    evidence = parse(text, [Attachment(name=n.replace("__", "."), content=content) for n, content in files.items()])
    return Facts(evidence).fact(("name", "world_size")).value


@every_case(
    ("text", "processes"),
    [
        ("8xA100 80G, OOM", 8), ("SFT on 8*H20", 8), ("2 nodes x 8 A800", 16), ("on 2 nodes with 8 GPUs each", 16),
        ("I have 4 H100s", 4), ("on a single GPU", 1), ("4卡 A800 80G", 4), ("16 张 H800", 16), ("单机八卡", 8),
        ("双机16卡", 16), ("两机八卡", 16), ("single GPU works, 8 GPUs hang", 8), ("A800 80G*8 的机器", 8),
        ("2*8 H100", 16), ("two machines with 8 H800 each", 16), ("以前用 4 卡 V100，现在换成 8 卡 4090", 8),
        ("```\n[INFO] 8 GPUs found, world_size=16\n```", 16),
    ],
)  # fmt: skip
def test_the_number_of_processes_is_known_and_has_a_place(text: str, processes: int) -> None:
    fact = Facts(parse(text)).fact(("name", "world_size"))
    assert fact.value == processes
    assert fact.user_provided
    place = Facts(parse(text)).fact(("name", "num_processes"))
    assert all(true_span(span, text) and not span.default for span in place.spans)
    assert Facts(parse(text)).fact(("default_used", "num_processes")).value is False


@every_case(
    "text",
    [
        "single gpu works, multi gpu hangs", "one gpu is slower than the others",
        "单卡正常，多卡卡死", "verl on 8xA100", "GRPO with trl on 8 GPUs", "the loss is 8 at step 100",
        "0 GPUs are seen", "Qwen2.5-7B on an A100",
    ],
)  # fmt: skip
def test_numbers_that_differ_or_do_not_count_processes_say_nothing(text: str) -> None:
    assert "num_processes" not in parse(text).run.settings


@every_case(
    ("text", "nodes"),
    [("3 nodes with 2 GPUs each hang, 2 nodes work", 3), ("16 H100 (2 nodes)", 2), ("单机没问题，双机就卡住", 2)],
)
def test_the_nodes_of_the_run_that_fails_are_known(text: str, nodes: int) -> None:
    assert parse(text).run.settings["num_nodes"].value == nodes


@every_case(
    ("text", "card"),
    [
        ("DDP hangs on 4 H100s, the same job is fine on A100", "H100"),
        ("2080ti 训练的", "2080TI"),
        ("A10G and A100", None),
    ],
)
def test_the_card_is_that_of_the_run_that_fails(text: str, card: str | None) -> None:
    fact = parse(text).versions.get("gpu")
    assert (fact.exact if fact else None) == card


def test_the_number_of_a_device_counts_nothing() -> None:
    assert (
        not {"num_gpus", "num_processes"} & parse("GPU 0 is full, rank 1 waits, NCCL_TIMEOUT=7200").run.settings.keys()
    )


def test_a_command_outweighs_what_is_said() -> None:
    evidence = parse("on 8 GPUs:\n```bash\ntorchrun --nproc_per_node 4 train.py --bf16 true\n```")
    assert Facts(evidence).fact(("name", "world_size")).value == 4


def test_a_comment_says_how_many() -> None:
    script = "# 8 GPUs, trl 0.24.0\nfrom trl import SFTConfig\nargs = SFTConfig(output_dir='o')\n"
    evidence = parse("", [Attachment(name="train.py", content=script)])
    assert Facts(evidence).fact(("name", "world_size")).value == 8


@every_case(
    ("text", "model", "family"),
    [
        ("Qwen2.5-7B on 8*H20", "Qwen2.5-7B", "qwen2.5"),
        ("llama3 8b 微调", "llama3 8b", "llama3"),
        ("sft of Mistral-7B-Instruct-v0.3.", "Mistral-7B-Instruct-v0.3", "mistral"),
        ("在910B上训练qwen3-30b-a3b", "qwen3-30b-a3b", "qwen3"),
    ],
)
def test_a_model_that_is_said_with_its_size_is_the_runs(text: str, model: str, family: str) -> None:
    run = parse(text).run
    assert run.model is not None
    assert run.model_family is not None
    assert (run.model.value, run.model_family.value) == (model, family)
    assert run.model.span is not None
    assert true_span(run.model.span, text)


def test_a_family_without_a_size_is_no_model() -> None:
    run = parse("qwen2.5 gives nan").run
    assert run.model is None
    assert run.model_family is not None


@every_case(("text", "card"), [("在910B上训练", "910B"), ("A800 80G 显存不够", "A800"), ("8*H20", "H20")])
def test_a_card_next_to_chinese_is_a_card(text: str, card: str) -> None:
    assert Facts(parse(text)).card_name().value == card
