"""Framework, algorithm, stage and model are recognised from what runs, not from how it is called."""

from __future__ import annotations

import pytest

from tests.every_case import every_case
from tests.frameworks.making import PLACE, command, option, stated
from trainmedic.kb.frameworks.models import family_of_type, model_family
from trainmedic.kb.frameworks.recognise import Recognition, recognise
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.run import Option, Origin, Region, Unresolved, Value
from trainmedic.kb.parse.pipeline import parse


def words(found: Recognition) -> tuple[str | None, str | None, str | None]:
    parts = (found.framework, found.algorithm, found.stage)
    framework, algorithm, stage = (None if part is None else part.value for part in parts)
    return framework, algorithm, stage


@every_case(
    ("program", "framework", "algorithm", "stage"),
    [
        ("openrlhf.cli.train_kto", "openrlhf", "kto", "preference"),
        ("openrlhf.cli.train_ppo_ray", "openrlhf", "ppo", "rl"),
        ("openrlhf.cli.train_rm", "openrlhf", "reward", "reward"),
        ("openrlhf.cli.train_prm", "openrlhf", "prm", "reward"),
        ("openrlhf.cli.train_kd", "openrlhf", "kd", "distill"),
        ("openrlhf.cli.batch_inference", "openrlhf", None, "inference"),
        ("openrlhf.cli.lora_combiner", "openrlhf", None, "export"),
        ("train_kto.py", "openrlhf", "kto", "preference"),
        ("../train_dpo.py", "openrlhf", "dpo", "preference"),
        ("train_kto_llama.sh", "openrlhf", "kto", "preference"),
        ("src/train_bash.py", "llamafactory", None, None),
        ("llamafactory-cli train", "llamafactory", None, None),
        ("llamafactory-cli export", "llamafactory", None, "export"),
        ("llamafactory-cli chat", "llamafactory", None, "inference"),
        ("swift dpo", "ms-swift", "dpo", "preference"),
        ("swift sft", "ms-swift", "sft", "sft"),
        ("swift rlhf", "ms-swift", "dpo", "preference"),
        ("swift infer", "ms-swift", None, "inference"),
        ("swift/cli/sft.py", "ms-swift", "sft", "sft"),
        ("megatron pt", "ms-swift", "pt", "pretrain"),
        ("trl kto", "trl", "kto", "preference"),
        ("trl vllm-serve", "trl", None, "inference"),
        ("trl/scripts/kto.py", "trl", "kto", "preference"),
        ("examples/scripts/reward_modeling.py", "trl", "reward", "reward"),
        ("examples/scripts/ppo/ppo.py", "trl", "ppo", "rl"),
        ("verl.trainer.main_ppo", "verl", "ppo", "rl"),
        ("verl.trainer.fsdp_sft_trainer", "verl", "sft", "sft"),
        ("recipe.dapo.main_dapo", "verl", None, "rl"),
        ("axolotl train", "axolotl", None, None),
        ("axolotl.cli.train", "axolotl", None, None),
        ("axolotl inference", "axolotl", None, "inference"),
        ("pretrain_gpt.py", "megatron-core", "pt", "pretrain"),
        ("/opt/Megatron-LM/pretrain_mamba.py", "megatron-core", "pt", "pretrain"),
        ("/opt/Megatron-LM/train_rl.py", "megatron-core", "grpo", "rl"),
        ("tools/run_text_generation_server.py", "megatron-core", None, "inference"),
        ("examples/run_grpo_math.py", "nemo-rl", "grpo", "rl"),
        ("/opt/nemo-rl/examples/run_distillation.py", "nemo-rl", "kd", "distill"),
        ("run_vlm_grpo.py", None, None, None),
        ("tune run lora_finetune_distributed", "torchtune", "sft", "sft"),
        ("tune run lora_dpo_single_device", "torchtune", "dpo", "preference"),
        ("tune run ppo_full_finetune_single_device", "torchtune", "ppo", "rl"),
        ("tune run knowledge_distillation_distributed", "torchtune", "kd", "distill"),
        ("tune run eleuther_eval", "torchtune", None, "inference"),
        ("tune run quantize", "torchtune", None, "export"),
        ("xtuner train", "xtuner", None, None),
        ("xtuner/v1/train/cli/sft.py", "xtuner", "sft", "sft"),
        ("xtuner/v1/train/cli/rl.py", "xtuner", None, "rl"),
        ("scripts/training/run_recipe.py", "megatron-bridge", None, None),
        ("examples/conversion/convert_checkpoints.py", "megatron-bridge", None, "export"),
        ("examples/start_rlvr_pipeline.py", "roll", None, "rl"),
        ("examples/start_dpo_pipeline.py", "roll", "dpo", "preference"),
        ("examples/start_onpolicy_distill_pipeline.py", "roll", "gkd", "distill"),
        ("examples/start_agentic_rollout_pipeline.py", "roll", None, "inference"),
        ("skyrl.train.entrypoints.main_base", "skyrl", None, "rl"),
        ("skyrl.train.main_sft", "skyrl", "sft", "sft"),
        ("skyrl.train.entrypoints.serve", "skyrl", None, "inference"),
        ("examples.train.algorithms.dapo.main_dapo", "skyrl", None, "rl"),
        ("skyrl_train.entrypoints.main_base", "skyrl-train", None, "rl"),
        ("vllm serve", "vllm", None, "inference"),
        ("sglang.launch_server", "sglang", None, "inference"),
        ("sglang serve", "sglang", None, "inference"),
        ("sglang_router.launch_server", "sglang", None, "inference"),
        ("train.py", None, None, None),
        ("scripts/prepare_kto_data.py", None, None, None),
    ],
)
def test_a_program_says_what_it_is(
    program: str, framework: str | None, algorithm: str | None, stage: str | None
) -> None:
    assert words(recognise([command(program)], [])) == (framework, algorithm, stage)


def yaml(**options: str) -> list[Option]:
    return [option(key, value, origin=Origin.YAML) for key, value in options.items()]


@every_case(
    ("options", "framework", "algorithm"),
    [
        (yaml(stage="kto", finetuning_type="full", model_name_or_path="m"), "llamafactory", "kto"),
        (yaml(stage="dpo", pref_loss="simpo", finetuning_type="lora"), "llamafactory", "simpo"),
        (yaml(stage="dpo", pref_loss="sigmoid", finetuning_type="lora"), "llamafactory", "dpo"),
        (yaml(stage="rm", cutoff_len="1024"), "llamafactory", "reward"),
        (yaml(model_name_or_path="m", dataset="d", cutoff_len="1024"), "llamafactory", "sft"),
        (yaml(base_model="m", rl="kto", sequence_len="512"), "axolotl", "kto"),
        (yaml(base_model="m", datasets="d", sequence_len="512"), "axolotl", "sft"),
        (yaml(rlhf_type="orpo", train_type="lora"), "ms-swift", "orpo"),
        ([option("actor_rollout_ref.model.path", "m"), option("algorithm.adv_estimator", "grpo")], "verl", "grpo"),
        ([option("zero_optimization.stage", 3), option("train_micro_batch_size_per_gpu", "auto")], "deepspeed", None),
        ([option("output_dir", "x", "DPOConfig")], "trl", "dpo"),
        ([option("beta", 0.1, "KTOTrainer"), option("output_dir", "x", "TrainingArguments")], "trl", "kto"),
        ([option("output_dir", "x", "TrainingArguments")], "transformers", None),
        (
            [option("advantage_estimator", "rloo"), option("prompt_data", "d"), option("zero_stage", 3)],
            "openrlhf",
            "rloo",
        ),
        ([option("chosen_key", "a"), option("rejected_key", "b"), option("ref_pretrain", "m")], "openrlhf", None),
        ([option("tensor-model-parallel-size", 2), option("bf16")], "megatron-core", None),
        ([option("tensor-model-parallel-size", 2), option("sft")], "megatron-core", "sft"),
        (
            yaml(**{"model_parallel.sequence_parallel": "true", "language_model.ffn_hidden_size": "8"}),
            "megatron-core",
            None,
        ),
        (
            [
                option("tokenizer._component_", "torchtune.models.llama3.llama3_tokenizer"),
                option("loss._component_", "torchtune.rlhf.loss.DPOLoss"),
            ],
            "torchtune",
            "dpo",
        ),
        ([option("batch_size", 2), option("compile", True), option("clip_grad_norm", 1.0)], None, None),
        (
            [
                option("rollout-batch-size", 32),
                option("tensor-model-parallel-size", 2),
                option("num-layers", 36),
                option("recompute-granularity", "full"),
                option("advantage-estimator", "gspo"),
            ],
            "slime",
            "grpo",
        ),
        ([option("rollout-batch-size", 32), option("loss-type", "sft_loss")], "slime", "sft"),
        (
            [
                option("lr", 1e-5, "AdamWConfig"),
                option("name", "x", "DatasetConfig"),
                option("mode", "chunk", "CELossConfig"),
            ],
            "xtuner",
            None,
        ),
        ([option("cliprange", 0.2, "GRPOLossConfig"), option("ep_size", 2, "FSDPConfig")], "xtuner", "grpo"),
        ([option("model.type", "DPO"), option("accumulative_counts", 4)], "xtuner", "dpo"),
        (yaml(**{"grpo.max_num_steps": "9", "policy.megatron_cfg.enabled": "true"}), "nemo-rl", "grpo"),
        (yaml(**{"rm.max_num_steps": "9", "policy.dtensor_cfg.enabled": "true"}), "nemo-rl", "reward"),
        (
            yaml(**{"grpo.adv_estimator.name": "reinforce_plus_plus", "policy.dtensor_cfg.enabled": "true"}),
            "nemo-rl",
            "reinforce",
        ),
        ([option("train.train_iters", 9), option("recipe", "llama32_1b_sft_config")], "megatron-bridge", "sft"),
        ([option("train.train_iters", 9), option("recipe", "qwen3_8b_pretrain_config")], "megatron-bridge", "pt"),
        (yaml(adv_estimator="gigpo", **{"actor_infer.device_mapping": "list(range(0,8))"}), "roll", "grpo"),
        (yaml(pretrain="m", **{"actor_infer.infer_batch_size": "1"}), "roll", "ppo"),
        (yaml(pretrain="m", **{"sft_train.infer_batch_size": "1"}), "roll", "sft"),
        (yaml(student_pretrain="m", kd_temperature="1", **{"student.infer_batch_size": "1"}), "roll", "kd"),
        (yaml(chosen_key="c", beta="0.1", **{"actor_train.infer_batch_size": "1"}), "roll", "dpo"),
        (
            [option("trainer.policy.model.path", "m"), option("generator.inference_engine.num_engines", 8)],
            "skyrl",
            "grpo",
        ),
        (
            [
                option("trainer.policy.model.path", "m"),
                option("trainer.algorithm.advantage_estimator", "rloo"),
                option("generator.num_inference_engines", 8),
            ],
            "skyrl-train",
            "rloo",
        ),
        ([option("learning_rate", 1e-5)], None, None),
    ],
)
def test_options_say_what_they_are(options: list[Option], framework: str | None, algorithm: str | None) -> None:
    assert words(recognise([], options))[:2] == (framework, algorithm)


def test_a_stage_option_outweighs_the_program() -> None:
    found = recognise([command("openrlhf.cli.train_ppo_ray")], [option("advantage_estimator", "group_norm")])
    assert words(found) == ("openrlhf", "grpo", "rl")
    assert found.algorithm is not None
    assert found.algorithm.span == PLACE


def test_a_run_name_or_path_never_decides() -> None:
    options = [option("run_name", "kto"), option("output_dir", "/ckpt/vanilla_loss-kto"), option("dataset_name", "dpo")]
    assert words(recognise([command("train.py")], options))[1] is None
    assert words(recognise([], [], "logs in /x/kto/ and my-dpo-run and reward_kto.log, with trl"))[:2] == ("trl", None)


def test_a_bare_script_name_yields_to_the_options() -> None:
    hf = [option("per_device_train_batch_size", 1), option("bf16"), option("output_dir", "x"), option("lora_r", 8)]
    assert words(recognise([command("train_dpo.py")], hf)) == ("trl", "dpo", "preference")
    own = [option("micro_train_batch_size", 1), option("pretrain", "m")]
    assert words(recognise([command("train_dpo.py")], own))[0] == "openrlhf"


def test_a_training_command_outweighs_a_server_beside_it() -> None:
    found = recognise([command("swift rollout"), command("swift rlhf")], [option("rlhf_type", "grpo")])
    assert words(found) == ("ms-swift", "grpo", "rl")


def test_prose_is_used_where_nothing_else_says() -> None:
    found = recognise([], [], "你好\n用 OpenRLHF 训练 gemma-2-2b-it 的奖励模型，loss nan")
    assert words(found) == ("openrlhf", "reward", "reward")
    assert found.framework is not None
    assert found.framework.span is not None
    assert (found.framework.span.line, found.framework.span.column, found.framework.span.text) == (2, 3, "OpenRLHF")
    assert found.model_family is not None
    assert found.model_family.value == "gemma2"


def test_pasted_lines_are_not_prose() -> None:
    region = Region(kind="log", source=None, start_line=2, end_line=2)
    assert words(recognise([region], [], "loss is nan\nrunning KTO with trl")) == (None, None, None)
    assert words(recognise([], [], "loss is nan\nrunning KTO with trl")) == ("trl", "kto", "preference")


def test_the_only_framework_installed_is_the_framework() -> None:
    assert words(recognise([], [], "", stated(openrlhf="0.3.3", trl="0.12.0")))[0] == "openrlhf"
    assert words(recognise([], [], "", stated(trl="0.12.0")))[0] == "trl"
    assert words(recognise([], [], "", stated(openrlhf="0.3.3", verl="0.5.0")))[0] is None


def test_a_bare_script_name_yields_to_the_only_framework_installed_if_it_has_the_options() -> None:
    shared = [option("learning_rate", 1e-6), option("beta", 0.1)]
    assert words(recognise([command("train_dpo.py")], shared, "", stated(trl="0.19.1"))) == ("trl", "dpo", "preference")
    own = [option("micro_train_batch_size", 1), option("pretrain", "m")]
    assert words(recognise([command("train_dpo.py")], own, "", stated(trl="0.19.1")))[0] == "openrlhf"


@every_case(
    ("program", "algorithm"),
    [("train_grpo.py", "grpo"), ("src/my-dpo.py", "dpo"), ("my_sft_then_dpo.py", None), ("run.py", None)],
)
def test_the_name_of_ones_own_script_tells_the_algorithm(program: str, algorithm: str | None) -> None:
    assert words(recognise([command(program)], [], "", stated(trl="0.19.1")))[:2] == ("trl", algorithm)
    assert words(recognise([command("my-dpo.py")], [], "", stated(slime="0.2.0")))[1] is None


@every_case(
    ("name", "family"),
    [
        ("google/gemma-2b", "gemma"), ("google/gemma-2b-it", "gemma"), ("google/gemma-7b", "gemma"),
        ("google/codegemma-2b", "gemma"), ("google/gemma-2-2b-it", "gemma2"), ("gemma2:9b", "gemma2"),
        ("/ckpt/gemma-2-27b-it/checkpoint-100", "gemma2"), ("/home/gemma-2-9b/Qwen2-7B-sft", "qwen2"),
        ("google/gemma-3-4b-it", "gemma3"), ("Qwen/Qwen-7B-Chat", "qwen"), ("Qwen/Qwen1.5-7B", "qwen1.5"),
        ("Qwen/Qwen2-7B", "qwen2"), ("Qwen/Qwen2.5-Math-1.5B-Instruct", "qwen2.5"), ("Qwen/Qwen3-8B", "qwen3"),
        ("meta-llama/Meta-Llama-3-8B", "llama3"), ("meta-llama/Llama-2-7b-hf", "llama2"),
        ("huggyllama/llama-13b", "llama"), ("mistralai/Mistral-7B-v0.1", "mistral"),
        ("mistralai/Mixtral-8x7B-v0.1", "mixtral"), ("deepseek-ai/DeepSeek-V3", "deepseek-v3"),
        ("microsoft/Phi-3-mini-4k-instruct", "phi3"), ("THUDM/glm-4-9b-chat", "glm4"), ("01-ai/Yi-6B", "yi"),
        ("LLaMA-Factory", None), ("google/shieldgemma-9b", "gemma2"), ("google/shieldgemma-2-4b-it", "gemma3"),
        ("google/datagemma-rag-27b-it", "gemma2"), ("google/txgemma-9b-chat", "gemma2"),
        ("google/recurrentgemma-2b", None), ("Qwen/Qwen2.5-Math-7B-Instruct", "qwen2.5"),
        ("Qwen/Qwen3.5-35B-A3B", "qwen3.5"), ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "qwen2.5"),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", "llama3"), ("deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", "qwen3"),
        ("deepseek-ai/DeepSeek-R1", "deepseek-v3"), ("meta-llama/Llama-3.1-8B-Instruct", "llama3"),
        ("meta-llama/Llama-3.2-1B", "llama3"), ("meta-llama/Llama-3.3-70B-Instruct", "llama3"),
        ("mistralai/Mistral-Nemo-Instruct-2407", "mistral"), ("microsoft/Phi-3.5-mini-instruct", "phi3"),
        ("zai-org/GLM-4.5", "glm4.5"), ("internlm/internlm2_5-7b-chat", "internlm2"),
        ("openbmb/MiniCPM-2B-sft-bf16", "minicpm"), ("openbmb/MiniCPM3-4B", "minicpm3"),
        ("openbmb/MiniCPM-V-2_6", "minicpm-v"), ("01-ai/Yi-1.5-9B-Chat", "yi"),
        ("baichuan-inc/Baichuan2-7B-Chat", "baichuan2"), ("baichuan-inc/Baichuan-13B-Chat", "baichuan"),
        ("THUDM/chatglm3-6b", "chatglm3"), ("THUDM/chatglm2-6b", "chatglm2"), ("my-model", None),
    ],
)  # fmt: skip
def test_a_model_name_gives_the_family(name: str, family: str | None) -> None:
    assert model_family(name) == family


def test_the_model_is_where_the_framework_keeps_it() -> None:
    found = recognise([command("openrlhf.cli.train_rm")], [option("pretrain", "google/gemma-2-2b-it")])
    assert found.model is not None
    assert found.model.value == "google/gemma-2-2b-it"
    assert found.model_family is not None
    assert found.model_family.value == "gemma2"
    python = recognise([], [option("pretrained_model_name_or_path", "Qwen/Qwen2-7B", "from_pretrained")])
    assert python.model is not None
    assert python.model.value == "Qwen/Qwen2-7B"


def test_a_model_type_gives_the_family_where_the_name_does_not() -> None:
    found = recognise([], [option("model_type", "gemma2", origin=Origin.JSON)])
    assert found.model_family is not None
    assert found.model_family.value == "gemma2"
    assert family_of_type("no such type") is None


def test_an_axolotl_file_without_rl_trains_supervised() -> None:
    options = [option("base_model", "a/b", origin=Origin.YAML), option("datasets.0.path", "x", origin=Origin.YAML)]
    assert words(recognise([], options)) == ("axolotl", "sft", "sft")
    options.append(option("rl", "kto", origin=Origin.YAML))
    assert words(recognise([], options)) == ("axolotl", "kto", "preference")


def test_a_plain_trainer_is_in_stage_sft() -> None:
    options = [option("output_dir", "o", "TrainingArguments", Origin.PYTHON)]
    assert words(recognise([], options)) == ("transformers", None, "sft")
    assert words(recognise([], [option("do_sample", True, "GenerationConfig", Origin.PYTHON)]))[2] is None


def test_a_tokenizer_names_the_model_only_where_it_is_the_only_one() -> None:
    one = option("pretrained_model_name_or_path", "Qwen/Qwen2-7B", "AutoTokenizer.from_pretrained")
    two = option("pretrained_model_name_or_path", "fb/toxic", "RobertaTokenizer.from_pretrained")
    found = recognise([], [one]).model
    assert found is not None
    assert found.value == "Qwen/Qwen2-7B"
    assert recognise([], [one, two]).model is None


def test_the_question_comes_before_what_was_attached() -> None:
    found = recognise([], [], "my Qwen2-7B", said=[("a.md", 1, "Gemma-2-9B")])
    assert found.model_family is not None
    assert (found.model_family.value, found.model_family.reason) == ("qwen2", "said in the question")
    attached = recognise([], [], "help", said=[("a.md", 3, "with Gemma-2-9B")]).model_family
    assert attached is not None
    assert attached.span is not None
    assert (attached.value, attached.span.attachment, attached.span.line) == ("gemma2", "a.md", 3)


def yaml_options(**settings: Value) -> list[Option]:
    return [option(key.replace("__", "."), value, origin=Origin.YAML) for key, value in settings.items()]


def test_a_class_that_only_trls_catalogue_knows_is_trls() -> None:
    assert words(recognise([], [option("output_dir", "o", "XPOConfig", Origin.PYTHON)]))[0] == "trl"
    assert words(recognise([], [option("output_dir", "o", "NoSuchConfig", Origin.PYTHON)]))[0] is None
    assert words(recognise([], [option("args", "o", "BCOTrainer", Origin.PYTHON)])) == ("trl", None, "preference")


def test_files_for_chat_and_merging_do_not_train() -> None:
    common: dict[str, Value] = {"model_name_or_path": "a/b", "template": "qwen", "finetuning_type": "lora"}
    assert words(recognise([], yaml_options(**common, infer_backend="vllm")))[1:] == (None, "inference")
    assert words(recognise([], yaml_options(**common, export_dir="out")))[1:] == (None, "export")
    assert words(recognise([], yaml_options(**common, dataset="d")))[1:] == ("sft", "sft")


def test_a_pretraining_data_set_is_pretraining() -> None:
    options = yaml_options(base_model="a/b", pretraining_dataset__0__path="x", sequence_len=512, sample_packing=True)
    assert words(recognise([], options)) == ("axolotl", "pt", "pretrain")
    flags = [option("pretrain", "a/b"), option("pretrain_mode")]
    assert words(recognise([command("openrlhf.cli.train_sft")], flags)) == ("openrlhf", "pt", "pretrain")


def test_an_swift_file_trains_supervised_only_where_it_trains() -> None:
    file: dict[str, Value] = {"model": "a/b", "dataset": "d", "tuner_type": "lora", "split_dataset_ratio": 0.1}
    assert words(recognise([], yaml_options(**file, learning_rate=1e-4))) == ("ms-swift", "sft", "sft")
    assert words(recognise([], yaml_options(**file))) == ("ms-swift", None, None)


def test_a_path_below_an_unresolved_folder_still_names_the_model() -> None:
    found = recognise([command("openrlhf.cli.train_rm")], [option("pretrain", Unresolved("${DIR}/gemma-2-2b-it"))])
    assert found.model is not None
    assert found.model_family is not None
    assert (found.model.value, found.model_family.value) == ("gemma-2-2b-it", "gemma2")
    assert recognise([command("openrlhf.cli.train_rm")], [option("pretrain", Unresolved("$MODEL"))]).model is None
    half = option("pretrain", Unresolved("$DIR/gemma-2-${SIZE}"))
    assert recognise([command("openrlhf.cli.train_rm")], [half]).model is None


@every_case("said", ["gemma2 loss differs between eager and sdpa", "训练 gemma-2 时 loss 是 nan", "Gemma 2, nan"])
def test_in_prose_gemma_2_needs_no_size(said: str) -> None:
    found = recognise([], [], said)
    assert found.model_family is not None
    assert found.model_family.value == "gemma2"


@every_case("said", ["gemma-2b goes nan", "my run out/gemma-2 goes nan", "gemma goes nan"])
def test_the_first_gemma_and_a_run_name_are_not_gemma_2(said: str) -> None:
    family = recognise([], [], said).model_family
    assert family is None or family.value == "gemma"


@every_case("said", ["kto in swift makes it worse", "swift grpo 显存没有下降", "swift dpo nan"])
def test_swift_beside_an_algorithm_is_the_framework(said: str) -> None:
    found = recognise([], [], said)
    assert found.framework is not None
    assert found.framework.value == "ms-swift"


def test_a_backend_counts_only_if_no_framework_that_trains_with_it_is_named() -> None:
    assert words(recognise([], [], "NaN loss in Megatron-LM"))[0] == "megatron-core"
    assert words(recognise([], [], "Megatron-Core 0.13 as backend of verl"))[0] == "verl"


@pytest.mark.parametrize(
    ("command", "framework", "model"),
    [
        (
            "torchrun run_summarization.py --model_name_or_path google/mt5-base --train_file a.json --summary_column s "
            "--source_prefix p --max_target_length 96 --do_train --predict_with_generate "
            "--learning_rate 1e-4 --num_train_epochs 3 --fp16 --output_dir out",
            "transformers",
            "google/mt5-base",
        ),
        (
            "accelerate launch train_sft.py --model_path /m/Qwen2.5-7B --data_path d.jsonl --output_dir out "
            "--max_len 4096 --bs 2 --accum 4 --epochs 2 --lr 1e-5 --attn flash_attention_2 --workers 4",
            None,
            None,
        ),
        (
            "deepspeed --module openrlhf.cli.train_sft --max_len 4096 --dataset d --pretrain m/Qwen2.5-7B",
            "openrlhf",
            "m/Qwen2.5-7B",
        ),
    ],
)
def test_a_script_of_the_users_own_is_no_framework_for_a_few_words_in_common(
    command: str, framework: str | None, model: str | None
) -> None:
    run = parse("", [Attachment(name="train.sh", content=command)]).run
    assert (run.framework.value if run.framework else None) == framework
    assert (run.model.value if run.model else None) == model


def test_the_model_of_a_script_is_that_of_its_command() -> None:
    script = "args = parser.parse_args()\nmodel = AutoModelForCausalLM.from_pretrained(args.model)\n"
    files = [
        Attachment(name="sft.py", content=script),
        Attachment(name="train.sh", content="python sft.py --model mistralai/Mixtral-8x7B-v0.1 --output_dir out"),
    ]
    model = parse("", files).run.model
    assert model is not None
    assert model.value == "mistralai/Mixtral-8x7B-v0.1"
    assert parse("", files[:1]).run.model is None
