"""Batch arithmetic per framework."""

from __future__ import annotations

from tests.frameworks.making import option, stated
from trainmedic.kb.frameworks.batch import Batch, batch
from trainmedic.kb.frameworks.canonical import canonicalise
from trainmedic.kb.model.run import Option, Unresolved


def sizes(options: list[Option], framework: str, algorithm: str, **packages: str) -> Batch:
    settings = canonicalise(options, framework, algorithm, None, stated(**packages))
    return batch(settings, framework, algorithm)


def numbers(found: Batch) -> tuple[int | None, ...]:
    parts = (found.world_size, found.data_parallel, found.accumulation, found.global_batch)
    return tuple(None if part is None else part.value for part in parts)


def test_hf_multiplies() -> None:
    options = [option("per_device_train_batch_size", 2), option("gradient_accumulation_steps", 4),
               option("NPROC_PER_NODE", 8, "env")]  # fmt: skip
    assert numbers(sizes(options, "llamafactory", "dpo", llamafactory="0.9.2")) == (8, 8, 4, 64)


def test_a_number_says_how_it_was_computed() -> None:
    options = [option("per_device_train_batch_size", 2), option("num_processes", 4, "launcher")]
    whole = sizes(options, "trl", "dpo", trl="0.12.2").global_batch
    assert whole is not None
    assert whole.how == "2 per device × 1 accumulated × 4 data parallel"
    assert {each.key for each in whole.options} == {"per_device_train_batch_size", "num_processes"}


def test_openrlhf_divides() -> None:
    options = [option("train_batch_size", 128), option("micro_train_batch_size", 2), option("num_gpus", 8, "launcher")]
    assert numbers(sizes(options, "openrlhf", "dpo", openrlhf="0.8.11")) == (8, 8, 8, 128)


def test_a_ring_shares_sequences() -> None:
    options = [option("ring_attn_size", 4), option("train_batch_size", 8), option("micro_train_batch_size", 1),
               option("num_gpus", 8, "launcher")]  # fmt: skip
    assert numbers(sizes(options, "openrlhf", "dpo", openrlhf="0.8.11")) == (8, 2, 4, 8)


def test_ms_swift_fills_up_to_sixteen() -> None:
    options = [option("NPROC_PER_NODE", 4, "env"), option("rlhf_type", "dpo")]
    assert numbers(sizes(options, "ms-swift", "dpo", ms_swift="3.3.0")) == (4, 4, 4, 16)
    assert numbers(sizes(options, "ms-swift", "dpo", ms_swift="3.0.0")) == (4, 4, 1, 4)
    assert numbers(sizes(options, "ms-swift", "grpo", ms_swift="4.5.2"))[2] == 1


def test_verl_counts_prompts_times_samples() -> None:
    options = [option("trainer.n_gpus_per_node", 8), option("actor_rollout_ref.rollout.n", 4),
               option("actor_rollout_ref.actor.ppo_mini_batch_size", 64),
               option("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", 8)]  # fmt: skip
    assert numbers(sizes(options, "verl", "grpo", verl="0.9.0")) == (8, 8, 4, 256)


def test_visible_devices_count_where_the_launcher_takes_them_all() -> None:
    options = [option("CUDA_VISIBLE_DEVICES", "0,1,2", "env")]
    assert numbers(sizes(options, "openrlhf", "dpo", openrlhf="0.8.11"))[0] == 3
    assert numbers(sizes(options, "ms-swift", "dpo", ms_swift="3.1.0"))[0] is None


def test_what_is_not_known_is_none() -> None:
    options = [option("NPROC_PER_NODE", Unresolved("$N"), "env"), option("per_device_train_batch_size", 1)]
    assert numbers(sizes(options, "llamafactory", "dpo", llamafactory="0.9.2"))[:2] == (None, None)
    uneven = [option("num_gpus", 3, "launcher"), option("ring_attn_size", 2)]
    assert numbers(sizes(uneven, "openrlhf", "dpo", openrlhf="0.8.11"))[1] is None
    assert numbers(batch({}, None)) == (None, None, None, None)


def test_megatron_divides_by_micro_batch_and_data_parallel_size() -> None:
    options = [option("global-batch-size", 64), option("micro-batch-size", 2), option("num_processes", 16, "launcher"),
               option("tensor-model-parallel-size", 2), option("pipeline-model-parallel-size", 2)]  # fmt: skip
    assert numbers(sizes(options, "megatron-core", "pt")) == (16, 4, 8, 64)
    assert numbers(sizes(options[1:], "megatron-core", "pt")) == (16, 4, None, None)


def test_slime_cuts_micro_batches_by_tokens_if_they_are_dynamic() -> None:
    options = [option("global-batch-size", 256), option("micro-batch-size", 1),
               option("tensor-model-parallel-size", 2), option("actor-num-gpus-per-node", 8)]  # fmt: skip
    assert numbers(sizes(options, "slime", "grpo")) == (8, 4, 64, 256)
    assert numbers(sizes([*options, option("use-dynamic-batch-size")], "slime", "grpo")) == (8, 4, None, 256)


def test_skyrl_counts_its_mini_batch_in_prompts() -> None:
    options = [option("trainer.policy_mini_batch_size", 64), option("generator.n_samples_per_prompt", 4),
               option("trainer.micro_train_batch_size_per_gpu", 2),
               option("trainer.placement.policy_num_gpus_per_node", 8)]  # fmt: skip
    assert numbers(sizes(options, "skyrl", "grpo", skyrl="0.3.0")) == (8, 8, 16, 256)


def test_torchtitan_accumulates_only_for_a_global_batch() -> None:
    options = [option("training.local_batch_size", 2), option("num_gpus", 8, "launcher")]
    for written, expected in ((-1, (8, 8, 1, 16)), (64, (8, 8, 4, 64))):
        found = sizes([*options, option("training.global_batch_size", written)], "torchtitan", "pt")
        assert numbers(found) == expected
