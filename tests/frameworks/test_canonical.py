"""Options become canonical settings, defaults included, only where that is certain."""

from __future__ import annotations

import pytest

from tests.every_case import every_case
from tests.frameworks.making import option, stated
from trainmedic.kb.frameworks import catalogue, tables
from trainmedic.kb.frameworks.canonical import SETTINGS, canonicalise, keys_of, name_of, warm
from trainmedic.kb.frameworks.settings import HF, specs
from trainmedic.kb.frameworks.tables import table
from trainmedic.kb.frameworks.values import NOTHING, normalise
from trainmedic.kb.model.run import Option, Origin, Unresolved, Value, VersionFact

FRAMEWORKS = ("openrlhf", "trl", "llamafactory", "ms-swift", "verl", "axolotl", "transformers")
_OPEN = ("optimizer.", "scheduler.", "data_types.", "bfloat16.")


def test_every_spelling_exists_in_some_catalogued_release() -> None:
    missing = []
    for spec in specs().values():
        for column, keys in spec.columns.items():
            if column in ("env", "launcher", "model", "trainer", "checkpoint"):
                continue
            names = {"bnb": "bitsandbytes-config", "hf": "transformers"}.get(column, column)
            known = table(names)
            assert known is not None, column
            hf = table("transformers")
            assert hf is not None
            every = {*known.names, *(hf.names if column in HF else ())}
            for key in keys:
                parents = {key.key.rsplit(".", 1)[0], key.key.split(".", 1)[0]}
                open_entry = bool(parents & every) or key.key.startswith(_OPEN)
                if key.key not in every and not ("." in key.key and open_entry):
                    missing.append((spec.name, column, key.key))
    assert missing == []


def test_names_are_many_and_unique() -> None:
    assert len(SETTINGS) == len(set(SETTINGS)) >= 150
    for name in ("attention", "weights_dtype", "micro_batch", "sequence_parallel", "rpo_alpha", "vanilla_loss",
                 "peft_task_type", "deepspeed_fp16", "logging_nan_inf_filter", "sequence_parallel_impl"):  # fmt: skip
        assert name in SETTINGS


def value(name: str, options: list[Option], framework: str, algorithm: str | None, **packages: str) -> object:
    """The value of one setting; the word ABSENT where it is unknown."""
    found = canonicalise(options, framework, algorithm, None, stated(**packages)).get(name)
    return "ABSENT" if found is None else found.value


@every_case(
    ("framework", "version", "algorithm", "name", "expected"),
    [
        ("openrlhf", "0.11.0", "dpo", "learning_rate", 1e-05),
        ("openrlhf", "0.11.0", "dpo", "zero_stage", 2),
        ("openrlhf", "0.11.0", "dpo", "max_length", 512),
        ("openrlhf", "0.11.0", "ppo", "max_length", 2048),
        ("openrlhf", "0.11.0", "dpo", "adam_beta2", 0.95),
        ("openrlhf", "0.11.0", "dpo", "weights_dtype", "bf16"),
        ("openrlhf", "0.11.0", "dpo", "attention", "flash2"),
        ("openrlhf", "0.8.10", "reward", "attention", "flash2"),
        ("openrlhf", "0.8.9", "reward", "attention", "eager"),
        ("openrlhf", "0.3.3", "kto", "weights_dtype", "auto"),
        ("openrlhf", "0.3.3", "kto", "vanilla_loss", False),
        ("openrlhf", "0.9.5", "kto", "vanilla_loss", "ABSENT"),
        ("openrlhf", "0.3.3", "dpo", "vanilla_loss", "ABSENT"),
        ("openrlhf", "0.8.11", "kto", "beta", 0.01),
        ("openrlhf", "0.8.11", "dpo", "beta", 0.1),
        ("openrlhf", "0.8.11", "dpo", "sequence_parallel", 1),
        ("trl", "1.9.0", "dpo", "learning_rate", 1e-06),
        ("trl", "1.9.0", "sft", "learning_rate", 2e-05),
        ("trl", "1.9.0", "reward", "learning_rate", 0.0001),
        ("trl", "1.9.0", "dpo", "weights_dtype", "fp32"),
        ("trl", "1.9.0", "dpo", "max_length", 1024),
        ("trl", "1.9.0", "grpo", "kl_coef", 0.0),
        ("trl", "1.9.0", "grpo", "beta", "ABSENT"),
        ("trl", "1.9.0", "dpo", "bf16", True),
        ("trl", "0.12.2", "reward", "bf16", False),
        ("trl", "0.12.2", "reward", "weights_dtype", None),
        ("trl", "0.12.2", "reward", "peft_task_type", "CAUSAL_LM"),
        ("trl", "0.12.2", "dpo", "sequence_parallel", "ABSENT"),
        ("trl", "0.12.2", "dpo", "micro_batch", 8),
        ("llamafactory", "0.9.5", "dpo", "beta", 0.1),
        ("llamafactory", "0.9.5", "dpo", "max_length", 2048),
        ("llamafactory", "0.9.5", "kto", "tuner", "lora"),
        ("llamafactory", "0.9.5", "kto", "lora_targets", ("all-linear",)),
        ("llamafactory", "0.9.5", "kto", "gradient_checkpointing", True),
        ("llamafactory", "0.9.2", "dpo", "attention", "auto"),
        ("llamafactory", "0.6.3", "sft", "attention", "eager"),
        ("ms-swift", "3.1.0", "dpo", "rpo_alpha", 1.0),
        ("ms-swift", "3.1.0", "dpo", "use_peft", True),
        ("ms-swift", "3.7.3", "dpo", "rpo_alpha", "ABSENT"),  # 3.6 and 3.8 were read, and differ
        ("ms-swift", "3.8.0", "dpo", "rpo_alpha", None),
        ("ms-swift", "4.5.2", "dpo", "micro_batch", 1),
        ("ms-swift", "4.5.2", "dpo", "use_peft", True),
        ("ms-swift", "4.5.2", "dpo", "learning_rate", 1e-4),
        ("verl", "0.9.0", "ppo", "rollout_batch", 1024),
        ("verl", "0.9.0", "grpo", "rollout_tensor_parallel", 2),
        ("axolotl", "0.18.0", "dpo", "epochs", 1.0),
        ("transformers", "4.46.3", "sft", "logging_nan_inf_filter", True),
        ("transformers", "4.46.3", "sft", "adam_epsilon", 1e-8),
        ("transformers", "4.46.3", "sft", "optimizer", "adamw_torch"),
    ],
)
def test_defaults_are_those_of_the_release(
    framework: str, version: str, algorithm: str, name: str, expected: object
) -> None:
    assert value(name, [], framework, algorithm, **{framework.replace("-", "_"): version}) == expected


def test_a_default_is_unknown_where_the_releases_in_question_differ() -> None:
    assert value("attention", [option("pretrain", "m")], "openrlhf", "reward") == "ABSENT"
    assert value("attention", [option("ds.zero_stage", 3)], "openrlhf", "reward") == "flash2"
    bounds = {"openrlhf": VersionFact(package="openrlhf", exact=None, low="0.5.0", high="0.8.9", reason="options")}
    assert canonicalise([], "openrlhf", "reward", None, bounds)["attention"].value == "eager"


def test_a_cut_off_configuration_gets_no_defaults() -> None:
    found = canonicalise([option("beta", 0.2)], "openrlhf", "dpo", None, stated(openrlhf="0.8.11"), partial=True)
    assert found["beta"].value == 0.2
    assert "micro_batch" not in found


def test_without_a_framework_only_what_is_written_counts() -> None:
    found = canonicalise([option("learning_rate", "1e-6", origin=Origin.YAML)], None)
    assert {name: setting.value for name, setting in found.items()} == {"learning_rate": 1e-6}


def test_a_default_says_where_it_comes_from() -> None:
    setting = canonicalise([], "openrlhf", "dpo", None, stated(openrlhf="0.8.11"))["attention"]
    assert setting.is_default
    assert setting.source == "default of openrlhf 0.8.11 --attn_implementation"
    assert setting.key == "attn_implementation"


def test_an_unresolved_variable_stays_unresolved() -> None:
    assert value("learning_rate", [option("learning_rate", Unresolved("$LR"))], "trl", "dpo") == Unresolved("$LR")


def test_the_last_of_equal_options_wins() -> None:
    assert value("beta", [option("beta", 0.1), option("beta", 0.3)], "openrlhf", "dpo") == 0.3


def test_packing_turns_flash_attention_on() -> None:
    assert value("attention", [option("packing_samples")], "openrlhf", "reward", openrlhf="0.8.5") == "flash2"
    assert value("attention", [option("packing_samples")], "openrlhf", "reward") == "flash2"
    assert value("attention", [option("ring_attn_size", 2)], "openrlhf", "dpo", openrlhf="0.8.5") == "flash2"
    explicit = [option("packing_samples"), option("attn_implementation", "eager")]
    assert value("attention", explicit, "openrlhf", "reward", openrlhf="0.8.11") == "eager"


def test_llamafactory_auto_takes_flash_attention_for_gemma2_where_it_is_installed() -> None:
    options = [option("flash_attn", "auto", origin=Origin.YAML)]
    versions = stated(llamafactory="0.9.2", flash_attn="2.6.1")
    found = canonicalise(options, "llamafactory", "sft", None, versions, model_family="gemma2")
    assert found["attention"].value == "flash2"
    assert found["attention"].option is not None
    other = canonicalise(options, "llamafactory", "sft", None, versions, model_family="qwen2")
    assert other["attention"].value == "auto"


def test_a_deepspeed_preset_gives_the_stage() -> None:
    options = [option("deepspeed", "zero3_offload")]
    assert value("zero_stage", options, "ms-swift", "dpo") == 3
    assert value("param_offload", options, "ms-swift", "dpo") is True
    assert value("zero_stage", [option("deepspeed", "ds_z2_config.json")], "llamafactory", "dpo") == 2


@every_case(
    ("options", "expected"),
    [
        ([], False),
        ([option("deepspeed", "my.json")], "ABSENT"),
        ([option("deepspeed", "my.json"), option("fp16.enabled", True, "deepspeed", Origin.JSON)], True),
        (
            [option("deepspeed", "my.json"), option("fp16.enabled", "auto", "deepspeed", Origin.JSON), option("fp16")],
            True,
        ),
        ([option("deepspeed", "my.json"), option("zero_optimization.stage", 2, "deepspeed", Origin.JSON)], False),
        ([option("deepspeed", {"fp16": {"enabled": True}}, "RewardConfig", Origin.PYTHON)], True),
        ([option("config_file", "acc.yaml", "launcher")], "ABSENT"),
    ],
)
def test_the_fp16_engine_is_known_only_where_the_configuration_is(options: list[Option], expected: object) -> None:
    assert value("deepspeed_fp16", options, "trl", "reward", trl="0.12.0", transformers="4.46.2") == expected


def test_deepspeed_auto_leaves_the_setting_to_the_trainer() -> None:
    options = [option("train_micro_batch_size_per_gpu", "auto", "deepspeed", Origin.JSON)]
    assert value("micro_batch", options, "trl", "dpo", trl="0.12.2") == 8


def test_python_parts_mean_the_same_settings() -> None:
    options = [
        option("output_dir", "x", "RewardConfig", Origin.PYTHON),
        option("torch_dtype", "torch.float16", "from_pretrained", Origin.PYTHON),
        option("task_type", "SEQ_CLS", "LoraConfig", Origin.PYTHON),
        option("r", 16, "LoraConfig", Origin.PYTHON),
        option("load_in_4bit", True, "BitsAndBytesConfig", Origin.PYTHON),
    ]
    found = canonicalise(options, "trl", "reward", None, stated(trl="0.12.0", transformers="4.46.2"))
    expected = {"weights_dtype": "fp16", "peft_task_type": "SEQ_CLS", "lora_rank": 16, "use_peft": True,
                "load_in_4bit": True, "quantization_bits": 4, "fp16": False}  # fmt: skip
    assert {name: found[name].value for name in expected} == expected


def test_a_script_without_peft_trains_everything() -> None:
    options = [option("output_dir", "x", "DPOConfig", Origin.PYTHON)]
    assert value("use_peft", options, "trl", "dpo", trl="0.12.0") is False


def test_the_optimizer_depends_on_torch_where_transformers_does() -> None:
    assert value("optimizer", [], "trl", "dpo", trl="1.9.0", transformers="5.5.3", torch="2.8.0") == "adamw_torch_fused"
    assert value("optimizer", [], "trl", "dpo", trl="1.9.0", transformers="5.5.3", torch="2.7.1") == "adamw_torch"
    assert value("optimizer", [], "trl", "dpo", trl="1.9.0", transformers="5.5.3") == "ABSENT"
    assert value("optimizer", [option("optim", "sgd")], "trl", "dpo") == "sgd"


@every_case(
    ("kind", "how", "written", "read"),
    [
        ("number", "", "1e-6", 1e-6), ("number", "", "1_000", 1000), ("int", "", 4, 4), ("flag", "", "false", False),
        ("flag", "", 1, True), ("flag", "", "maybe", "maybe"), ("flag", "", "null", None),
        ("flag", "not", True, False), ("dtype", "", "torch.half", "fp16"), ("dtype", "", "int8", "int8"),
        ("dtype", "bf16_switch", False, "auto"), ("flag", "is_bf16", "bf16", True),
        ("attention", "", "kernels-community/flash-attn2", "flash2"),
        ("attention", "", "x/vllm-flash-attn3", "flash3"), ("attention", "", "fa2", "flash2"),
        ("attention", "llamafactory_attention", False, "eager"),
        ("attention", "llamafactory_attention", "disabled", "eager"), ("attention", "sdpa", True, "sdpa"),
        ("targets", "", "all", ("all-linear",)), ("targets", "", "q_proj,v_proj", ("q_proj", "v_proj")),
        ("targets", "", "q_proj v_proj", ("q_proj", "v_proj")),
        ("targets", "", r"model\.layers\.(\d+)", (r"model\.layers\.(\d+)",)), ("number", "second", (0.9, 0.95), 0.95),
        ("number", "first", "0.9 0.95", 0.9), ("flag", "offloads", "cpu", True), ("flag", "offloads", "none", False),
        ("list", "", ("a",), ("a",)), ("text", "", "cosine", "cosine"),
    ],
)  # fmt: skip
def test_values_have_one_form(kind: str, how: str, written: Value, read: Value) -> None:
    assert normalise(kind, how, written) == read


def test_a_switch_that_is_off_says_nothing_about_a_word() -> None:
    assert normalise("attention", "sdpa", False) is NOTHING
    assert normalise("flag", "", True, negated=True) is False


def test_an_option_is_known_by_its_setting() -> None:
    assert name_of("openrlhf", "ds.attn_implementation") == "attention"
    assert name_of("trl", "beta", "DPOConfig", "dpo") == "beta"
    assert name_of("trl", "beta", "GRPOConfig", "grpo") == "kl_coef"
    assert name_of("trl", "fp16.enabled", "deepspeed") == "deepspeed_fp16"
    assert name_of("trl", "nothing_known") is None
    assert keys_of("openrlhf", "attention", "0.8.5") == ("flash_attn",)
    assert keys_of("openrlhf", "no such setting") == ()
    assert catalogue.frameworks()[:6] == ("openrlhf", "llamafactory", "ms-swift", "trl", "verl", "axolotl")


@every_case("written", ["torch.float16", "torch.half", "half", "fp16", "float16", "FP16", "np.float16"])
def test_every_way_to_write_half_precision_is_fp16(written: str) -> None:
    assert normalise("dtype", "", written) == "fp16"


@every_case("written", ["TaskType.SEQ_CLS", "peft.TaskType.SEQ_CLS", "SEQ_CLS", "seq_cls"])
def test_a_task_type_is_the_members_name(written: str) -> None:
    options = [option("task_type", written, "LoraConfig", Origin.PYTHON)]
    assert value("peft_task_type", options, "trl", "reward", trl="0.12.0") == "SEQ_CLS"


def test_other_loads_than_the_trained_models_set_nothing() -> None:
    for scope in ("AutoTokenizer.from_pretrained", "RobertaForSequenceClassification.from_pretrained"):
        options = [option("torch_dtype", "torch.float16", scope, Origin.PYTHON)]
        assert value("weights_dtype", [*options, option("output_dir", "o", "DPOConfig")], "trl", "dpo") == "ABSENT"


def test_the_keywords_of_get_peft_model_are_pefts() -> None:
    options = [option("r", 16, "get_peft_model", Origin.PYTHON)]
    assert value("lora_rank", options, "trl", "sft") == 16
    assert value("use_peft", options, "trl", "sft") is True


def test_an_algorithm_that_older_releases_lack_bounds_the_defaults() -> None:
    options = [option("stage", "kto", origin=Origin.YAML), option("template", "qwen", origin=Origin.YAML)]
    assert value("beta", options, "llamafactory", "kto") == 0.1


@every_case("kind", ["int", "number"])
def test_a_number_of_hundreds_of_digits_stays_text(kind: str) -> None:
    assert normalise(kind, "", "9" * 5_000) == "9" * 5_000
    assert normalise(kind, "", "9" * 300) == int("9" * 300)


def test_after_warming_a_first_question_reads_no_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    warm()
    monkeypatch.setattr(tables, "load_texts", lambda _: {})
    for framework in FRAMEWORKS:
        canonicalise([option("output_dir", "x")], framework, "sft")
        assert table(framework) is not None


def test_a_program_without_ray_has_no_actors() -> None:
    facts = {"openrlhf": VersionFact(package="openrlhf", exact="0.5.7", reason="said")}
    for program, gpus in (
        ("openrlhf.cli.train_ppo_ray", 8),
        ("openrlhf.cli.train_ppo", None),
        ("examples/train_ppo.py", None),
    ):
        found = canonicalise((), "openrlhf", "ppo", "rl", facts, programs=[program])
        assert (found["num_gpus"].value if "num_gpus" in found else None) == gpus


@every_case(("megatron", "rate", "tensor"), [("true", 2e-6, 4), ("false", 1e-6, 2)])
def test_options_of_the_engine_that_is_switched_off_set_nothing(megatron: str, rate: float, tensor: int) -> None:
    options = [
        option("policy.megatron_cfg.enabled", megatron),
        option("policy.megatron_cfg.optimizer.lr", 2e-6),
        option("policy.megatron_cfg.tensor_model_parallel_size", 4),
        option("policy.optimizer.kwargs.lr", 1e-6),
        option("policy.dtensor_cfg.tensor_parallel_size", 2),
    ]
    settings = canonicalise(options, "nemo-rl", "grpo")
    assert (settings["learning_rate"].value, settings["tensor_parallel"].value) == (rate, tensor)
    assert "seed" not in settings  # defaults are those of an example file


def test_the_builder_of_torchtunes_model_says_how_it_is_tuned() -> None:
    full = [option("model._component_", "torchtune.models.llama3.llama3_8b", origin=Origin.YAML)]
    assert value("use_peft", full, "torchtune", "sft") is False
    assert value("lora_rank", full, "torchtune", "sft") == "ABSENT"
    assert value("packing", full, "torchtune", "sft", torchtune="0.6.1") is False
    quantised = [option("model._component_", "torchtune.models.llama3.qlora_llama3_8b"), option("model.lora_rank", 8)]
    assert value("load_in_4bit", quantised, "torchtune", "sft") is True
    assert value("lora_rank", quantised, "torchtune", "sft") == 8


def test_defaults_are_unknown_without_the_file_that_the_command_names() -> None:
    named = [option("rollout_batch_size", 8, origin=Origin.YAML)]
    assert value("num_iterations", named, "roll", "grpo", roll="0.3.0") == 1
    assert value("num_iterations", [option("config_name", "rlvr")], "roll", "grpo", roll="0.3.0") == "ABSENT"
    assert value("packing", [option("batch_size", 8)], "torchtune", "sft", torchtune="0.6.1") == "ABSENT"
    assert value("micro_batch", [option("batch_size", 8)], "torchtune", "sft", torchtune="0.6.1") == 8


def test_options_of_a_lenient_framework_bound_no_release() -> None:
    assert catalogue.infer_versions("torchtune", ["memory_efficient_fsdp_wrap"])[:2] == (None, None)
    assert catalogue.infer_versions("torchtune", ["tensor_parallel_dim"])[:2] == (None, None)


def test_sglangs_share_of_memory_inside_a_framework() -> None:
    key = "actor_rollout_ref.rollout.engine_kwargs.sglang.mem_fraction_static"
    assert value("rollout_memory", [option(key, 0.7)], "verl", "grpo", verl="0.7.0") == 0.7
    assert value("rollout_memory", [option("sglang_mem_fraction_static", 0.6)], "ms-swift", "grpo") == 0.6
