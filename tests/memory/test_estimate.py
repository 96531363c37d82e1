"""The terms of a training step: their arithmetic, what divides them, and how they are read from a configuration."""

from __future__ import annotations

import json

import pytest

from benchmarks import memory
from tests.every_case import every_case
from trainmedic.kb.data_files import load_table
from trainmedic.kb.engine.facts import FactBook
from trainmedic.kb.memory.estimate import GIB, Plan, estimate
from trainmedic.kb.memory.plan import Unplanned, plan_of
from trainmedic.kb.memory.shape import shape_of
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse

SWIFT = "NPROC_PER_NODE={ranks} swift sft --model Qwen/Qwen2.5-7B-Instruct --torch_dtype bfloat16 {rest}"
BATCH = "--per_device_train_batch_size 2 --max_length 4096"
PARAMETERS = 7_615_487_488
TOKENS = 2 * 4096


def planned(command: str, *others: Attachment, name: str = "train.sh") -> Plan | Unplanned:
    evidence = parse("", [Attachment(name=name, content=command + "\n"), *others])
    return plan_of(FactBook(evidence).main)


def terms(rest: str, ranks: int = 4) -> dict[str, float]:
    """The likeliest size of each term, in GiB."""
    plan = planned(SWIFT.format(ranks=ranks, rest=f"{BATCH} {rest}"))
    assert isinstance(plan, Plan)
    return {name: term.likely / GIB for name, term in estimate(plan).terms.items()}


@every_case(
    ("name", "family", "parameters"),
    [
        ("qwen/qwen2.5-7b-instruct", "qwen2.5", PARAMETERS),
        ("meta-llama/llama-3.2-1b", "llama3", 1_235_746_816),
        ("meta-llama/meta-llama-3-70b", "llama3", 70_552_387_584),
        ("mistralai/mixtral-8x7b-v0.1", "mixtral", 46_702_006_272),
        ("qwen/qwen3-30b-a3b", "qwen3", 30_525_000_000),
        ("someone/new-13b", None, 13_000_000_000),
        ("someone/tiny-135m", None, 135_000_000),
    ],
)
def test_a_name_gives_the_published_number_of_parameters(name: str, family: str | None, parameters: int) -> None:
    shape = shape_of(name, family)
    assert shape is not None
    assert shape.parameters == pytest.approx(parameters, rel=0.002)


def test_every_known_shape_has_about_as_many_parameters_as_its_name_says() -> None:
    for family, rows in load_table("memory/shapes.toml")["families"].items():
        for billions, *_ in rows:
            shape = shape_of(f"x-{billions}b", family)
            assert shape is not None
            assert shape.exact
            assert shape.parameters == pytest.approx(billions * 1e9, rel=0.32), (family, billions)


def test_a_pasted_model_configuration_goes_before_the_name() -> None:
    config = {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 1024, "vocab_size": 1000}
    config |= {"num_hidden_layers": 2, "num_attention_heads": 8, "intermediate_size": 2048}
    plan = planned(
        SWIFT.format(ranks=1, rest=BATCH), Attachment(name="config.json", content=json.dumps(config, indent=1))
    )
    assert isinstance(plan, Plan)
    assert (plan.shape.layers, plan.shape.vocabulary) == (2, 1000)


def test_full_training_in_bfloat16_keeps_eight_bytes_and_a_temporary_for_each_parameter() -> None:
    found = terms("--train_type full")
    kept = found["weights"] + found["gradients"] + found["optimizer"]
    assert kept == pytest.approx(8 * PARAMETERS / GIB)
    assert found["update"] == pytest.approx(2 * PARAMETERS / GIB)


@every_case(
    ("stage", "each"),
    [("zero1", (2, 2, 12 / 4)), ("zero2", (2, 2 / 4, 12 / 4)), ("zero3", (2 / 4, 2 / 4, 12 / 4))],
)
def test_zero_divides_sixteen_bytes_by_the_ranks(stage: str, each: tuple[float, float, float]) -> None:
    found = terms(f"--train_type full --deepspeed {stage}")
    sizes = [found[name] * GIB / PARAMETERS for name in ("weights", "gradients", "optimizer")]
    assert sizes == pytest.approx(each)


def test_only_the_adapter_has_gradients_and_states() -> None:
    found = terms("--train_type lora")
    assert found["weights"] == pytest.approx(2 * PARAMETERS / GIB, rel=0.01)
    assert found["gradients"] + found["optimizer"] < 0.5


def test_four_bits_shrink_the_linear_weights_and_not_the_embeddings() -> None:
    found = terms("--train_type lora --quant_method bnb --quant_bits 4")
    embeddings = 2 * 152064 * 3584
    expected = (0.56 * (PARAMETERS - embeddings) + 2 * embeddings) / GIB
    assert found["weights"] == pytest.approx(expected, rel=0.03)


def test_logits_take_sixteen_bytes_for_each_token_and_word_unless_the_loss_is_fused() -> None:
    plain, fused = terms("--train_type lora"), terms("--train_type lora --use_liger_kernel true")
    assert plain["logits"] == pytest.approx(16 * TOKENS * 152064 / GIB)
    assert fused["logits"] < 0.1 * plain["logits"]


def test_checkpointing_keeps_one_layer_and_the_inputs_of_the_others() -> None:
    kept, recomputed = (terms(f"--train_type lora --gradient_checkpointing {on}") for on in ("false", "true"))
    assert recomputed["activations"] < kept["activations"] / 8
    inputs = 2 * 3584 * 28 * TOKENS / GIB
    assert recomputed["activations"] > inputs


def test_attention_scores_grow_with_the_square_of_the_length_and_only_without_a_flash_kernel() -> None:
    assert terms("--train_type lora --attn_impl flash_attn")["attention"] == 0
    assert terms("--train_type lora --attn_impl eager")["attention"] == pytest.approx(6 * 28 * 2 * 4096**2 / GIB)


def test_pairs_are_twice_the_rows_and_bring_a_reference_model() -> None:
    plan = planned(
        "swift rlhf --rlhf_type dpo --model Qwen/Qwen2.5-7B-Instruct --train_type full --torch_dtype bfloat16 " + BATCH
    )
    assert isinstance(plan, Plan)
    assert (plan.rows, plan.references) == (4, 1)


def test_a_colocated_engine_takes_its_share_of_the_card() -> None:
    command = (
        "swift rlhf --rlhf_type grpo --model Qwen/Qwen2.5-7B-Instruct --train_type lora --torch_dtype bfloat16 "
        "--use_vllm true --vllm_mode colocate --vllm_gpu_memory_utilization 0.4 --per_device_train_batch_size 2 "
        "--max_completion_length 1024 --max_length 1024 --sleep_level {}"
    )
    evidence = [parse("", [Attachment(name="train.sh", content=command.format(level))]) for level in (0, 1)]
    awake, asleep = (plan_of(FactBook(each).main, 80 * GIB) for each in evidence)
    assert isinstance(awake, Plan)
    assert isinstance(asleep, Plan)
    assert awake.engine.likely == pytest.approx(32 * GIB)
    assert asleep.engine.likely == 0


@every_case(
    ("command", "missing"),
    [
        (f"swift sft --train_type lora {BATCH}", ("model",)),
        ("swift sft --model $MODEL --train_type lora --max_length 512 --per_device_train_batch_size 1", ("model",)),
        (f"swift sft --model Qwen/Qwen2.5-7B --train_type full --deepspeed zero3 {BATCH}", ("setting:num_gpus",)),
        (f"CUDA_VISIBLE_DEVICES=0,1 swift sft --model Qwen/Qwen2.5-7B --train_type full {BATCH}", ()),
        (f"NPROC_PER_NODE=4 swift rlhf --rlhf_type ppo --model Qwen/Qwen2.5-7B --train_type full {BATCH}", ()),
    ],
)
def test_what_is_missing_for_an_estimate_is_named(command: str, missing: tuple[str, ...]) -> None:
    plan = planned(command)
    assert isinstance(plan, Unplanned)
    assert plan.missing == missing


def test_the_estimate_agrees_with_published_peaks() -> None:
    assert memory.main([]) == 0
