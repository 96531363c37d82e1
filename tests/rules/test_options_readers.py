"""Which reader an option has, what that reader makes of it, and the hints for what it does not take."""

from __future__ import annotations

from tests.every_case import every_case
from trainmedic.kb.checks.option_offences import Offence, hint, report, successor
from trainmedic.kb.checks.option_readers import judged
from trainmedic.kb.checks.option_values import lacks_value, not_a_choice, takes_no_value, wrong_type
from trainmedic.kb.checks.option_verdicts import (
    ELSEWHERE,
    GONE,
    KNOWN,
    LATER,
    OPEN,
    RETIRED,
    UNKNOWN,
    Reader,
    judge,
)
from trainmedic.kb.checks.reading_problems import shell_problems
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse


def reader(
    catalogue: str, version: str | None = None, owner: str = "", how: str = "call", inherits: str | None = None
) -> Reader:
    """A reader of one release, or of none known."""
    owners = (owner,) if owner else ()
    return Reader(catalogue, version, version, owners, True, inherits, how)


def verdicts(**files: str) -> dict[str, str]:
    """Option → what its reader makes of it, for a paste of these files (``a_sh`` is ``a.sh``)."""
    attachments = [Attachment(name=name.replace("_", "."), content=text) for name, text in files.items()]
    evidence = parse("", attachments)
    return {option.key: verdict.kind for run in evidence.runs for option, _, verdict in judged(Facts(evidence, run))}


@every_case(
    ("who", "name", "kind"),
    [
        (reader("ms-swift", "4.1.0", "sft"), "train_type", GONE),
        (reader("ms-swift", "4.0.2", "sft"), "train_type", KNOWN),
        (reader("ms-swift", "3.8.0", "sft"), "tuner_type", LATER),
        (reader("ms-swift", None, "sft"), "train_type", RETIRED),
        (reader("ms-swift", "4.1.0", "sft"), "rlhf_type", ELSEWHERE),
        (reader("ms-swift", "4.5.2", "sft"), "save_only_model", KNOWN),
        (reader("trl", "0.24.0", "SFTConfig"), "beta", ELSEWHERE),
        (reader("trl", None, "SFTConfig"), "learning_rate", KNOWN),
        (reader("trl", "0.24.0", "SFTConfig", inherits="4.57.1"), "evaluation_strategy", GONE),
        (reader("trl", "0.12.2", "PPOConfig"), "log_with", GONE),
        (reader("trl", "0.29.0", "DPOConfig"), "max_prompt_length", OPEN),
        (reader("openrlhf", "0.11.0", "train_sft"), "actor.model_name_or_path", ELSEWHERE),
        (reader("openrlhf", "0.8.11", "train_dpo", "argparse"), "max_ep", KNOWN),
        (reader("llamafactory", None, how="dict"), "lora_r", UNKNOWN),
        (reader("llamafactory", None, how="argparse"), "lora_r", KNOWN),
        (reader("llamafactory", None, how="dict"), "warmup_ratio", KNOWN),
        (reader("verl", None, how="hydra"), "trainer.total_epoch", UNKNOWN),
        (reader("verl", None, how="hydra"), "actor_rollout_ref.actor.veomni.param_offload", OPEN),
        (reader("deepspeed", how="json"), "zero_optimization.param_persistence_threshold", OPEN),
        (reader("trl", "1.9.0", how="argparse"), "num_processes", OPEN),
        (reader("transformers", None, "Seq2SeqTrainingArguments"), "output_dir", KNOWN),
        (reader("trl", "0.24.0", "SFTConfig"), "evaluation_strategy", GONE),
        (reader("trl", "0.4.7", "PPOConfig"), "ppo_epochs", OPEN),
        (reader("trl", "99.0.0", "SFTConfig"), "quite_new_thing", OPEN),
        (reader("openrlhf", "0.11.0", "train_kto", "argparse"), "pretrain", OPEN),
        (reader("openrlhf", None, "train_sft", "argparse"), "actor.model_name_or_path", ELSEWHERE),
        (reader("accelerate", None, "ClusterConfig", "json"), "dynamo_backend", OPEN),
        (reader("accelerate", None, "ClusterConfig", "json"), "kt_config", OPEN),
        (reader("accelerate", None, "ClusterConfig", "json"), "num_process", UNKNOWN),
        (reader("deepspeed", how="json"), "monitor_config", OPEN),
        (reader("nemo-rl", how="hydra"), "grpo.num_generation_per_prompt", UNKNOWN),
        (reader("nemo-rl", "0.7.0", how="tree"), "teacher", OPEN),
        (reader("nemo-rl", "0.1.0", how="tree"), "policy.draft.enabled", OPEN),
        (reader("roll", how="tree"), "ppo_epoch", UNKNOWN),
        (reader("roll", "0.3.0", how="tree"), "reward_norm", GONE),
        (reader("roll", "0.3.0", how="tree"), "actor_train.router_replay.mode", OPEN),
        (reader("skyrl", "0.3.0", "main_base", "hydra"), "generator.backend", UNKNOWN),
        (reader("skyrl", "0.2.0", "main_base", "hydra"), "generator.backend", OPEN),
        (reader("skyrl", "0.3.0", "main_base", "hydra"), "trainer.use_sample_packing", OPEN),
        (reader("skyrl", "0.3.0", "main_base", "hydra"), "batch_size", ELSEWHERE),
        (reader("xtuner", "1.0.1", "FSDPConfig"), "tp_sise", UNKNOWN),
        (reader("xtuner", "0.1.23", "FSDPConfig"), "tp_sise", OPEN),
        (reader("sglang", "0.5.6.post2", "server", "argparse"), "mem-fraction-static", KNOWN),
        (reader("sglang", "0.5.6.post2", "server", "argparse"), "tp", KNOWN),
        (reader("sglang", "0.5.6.post2", "server", "argparse"), "enable-ep-moe", GONE),
        (reader("sglang", "0.5.3", "server", "argparse"), "enable-ep-moe", KNOWN),
        (reader("sglang", None, "ServerArgs"), "tensor_parallel_size", ELSEWHERE),
        (reader("sglang", None, "ServerArgs"), "mem_fraction_statc", UNKNOWN),
    ],
)
def test_a_reader_judges_a_name(who: Reader, name: str, kind: str) -> None:
    assert judge(who, name).kind == kind


@every_case(
    ("who", "name", "why", "better"),
    [
        (reader("axolotl", how="pydantic"), "num_train_epochs", "foreign", "num_epochs"),
        (reader("axolotl", how="pydantic"), "context_parapllel_size", "spelling", "context_parallel_size"),
        (reader("axolotl", how="pydantic"), "lr", "spelling", "learning_rate"),
        (reader("axolotl", how="pydantic"), "debug", "none", ""),
        (reader("peft", None, "LoraConfig"), "lora_rank", "foreign", "r"),
        (reader("trl", "0.24.0", "GRPOConfig"), "num_completions", "none", ""),
        (reader("transformers", None, "TrainingArguments"), "steps_eval", "spelling", "eval_steps"),
        (reader("llamafactory", how="dict"), "beta", "foreign", "pref_beta"),
        (reader("deepspeed", how="json"), "gradient_acumulation_steps", "spelling", "gradient_accumulation_steps"),
        (reader("verl", how="hydra"), "data.max_prompt_len", "spelling", "data.max_prompt_length"),
    ],
)
def test_an_unknown_name_gets_a_hint(who: Reader, name: str, why: str, better: str) -> None:
    found = hint(who, name)
    assert (found.why, found.name) == (why, better)


@every_case(
    ("who", "name", "now"),
    [
        (reader("ms-swift", "4.1.0", "sft"), "sft_type", "tuner_type"),
        (reader("ms-swift", "3.12.6", "sft"), "tuner_type", "train_type"),
        (reader("openrlhf", "0.11.0", "train_dpo"), "flash_attn", "ds.attn_implementation"),
        (reader("openrlhf", "0.8.11", "train_dpo"), "flash_attn", "attn_implementation"),
        (reader("openrlhf", "0.11.0", "train_ppo_ray"), "ref_reward_offload", "ref.offload + reward.offload"),
        (reader("trl", "0.29.1", "DPOConfig"), "rpo_alpha", None),
    ],
)
def test_the_successor_is_one_that_the_release_has(who: Reader, name: str, now: str | None) -> None:
    assert successor(who, name) == now


def test_a_script_of_the_users_own_has_no_reader() -> None:
    assert verdicts(a_sh="python train.py --model_name_or_path m --learning_rat 1e-5 --output_dir o") == {}


def test_classes_of_the_same_name_have_no_reader() -> None:
    own = 'from my.configs import SFTConfig\nargs = SFTConfig(output_dir="o", foo=1)\n'
    trl = 'from trl import SFTConfig\nargs = SFTConfig(output_dir="o", foo=1)\n'
    assert verdicts(a_py=own) == {}
    assert verdicts(a_py=trl) == {"output_dir": KNOWN, "foo": UNKNOWN}


def test_other_trainers_of_llamafactory_have_no_reader() -> None:
    head = "model_name_or_path: m\nstage: sft\nfinetuning_type: lora\ntemplate: qwen\n"
    assert verdicts(a_yaml=head + "foo: 1\n")["foo"] == UNKNOWN
    assert verdicts(a_yaml=head + "foo: 1\ntensor_model_parallel_size: 2\n") == {}


@every_case(
    ("requirement", "kind"), [("ms-swift>=4.1.0", GONE), ("ms-swift<4.0", KNOWN), ("ms-swift>=3.5,<4.1", KNOWN)]
)
def test_a_stated_range_decides_where_all_of_it_agrees(requirement: str, kind: str) -> None:
    command = "swift sft --model m --dataset d --train_type lora"
    assert verdicts(a_sh=command, requirements_txt=requirement + "\n")["train_type"] == kind


def test_versions_that_only_follow_from_the_options_do_not_count() -> None:
    command = "swift sft --model m --dataset d --train_type lora"
    assert verdicts(a_sh=command)["train_type"] == RETIRED
    assert verdicts(a_sh=command, pip_txt="ms-swift==3.12.6\n")["train_type"] == KNOWN


@every_case(
    ("command", "pip", "refused"),
    [
        ("deepspeed --module openrlhf.cli.train_dpo --pretrain m --max_epochs 1.5", "openrlhf==0.8.11", "type"),
        ("deepspeed --module openrlhf.cli.train_dpo --pretrain m --max_epochs 1_0", "openrlhf==0.8.11", ""),
        ("deepspeed --module openrlhf.cli.train_dpo --pretrain m --bf16 true", "openrlhf==0.8.11", "switch"),
        ("deepspeed --module openrlhf.cli.train_dpo --pretrain m --zero_stage --bf16", "openrlhf==0.8.11", "value"),
        ("deepspeed --module openrlhf.cli.train_dpo --pretrain m --eval_steps -1", "openrlhf==0.8.11", ""),
        ("swift rlhf --rlhf_type ppo2 --model m", "ms-swift==3.8.0", "choice"),
        ("swift rlhf --rlhf_type ppo --model m", "ms-swift==3.1.0", ""),
        ("swift sft --model m --save_strategy no", "ms-swift==4.5.2", ""),
        ("trl sft --model_name_or_path m --bf16 --output_dir o", "trl==0.24.0", "value"),
        ("trl sft --model_name_or_path m --bf16 --output_dir o", "trl==0.12.2", ""),
        ("trl sft --model_name_or_path m --bf16 maybe --output_dir o", "trl==0.24.0", "type"),
    ],
)
def test_values_are_judged_as_the_parser_does(command: str, pip: str, refused: str) -> None:
    evidence = parse("", [Attachment(name="a.sh", content=command), Attachment(name="pip.txt", content=pip + "\n")])
    found = set()
    for option, who, verdict in judged(Facts(evidence, evidence.run)):
        checks = {
            "type": wrong_type(option, who, verdict),
            "choice": not_a_choice(option, who, verdict),
            "switch": takes_no_value(option, who, verdict),
            "value": lacks_value(option, who, verdict),
        }
        found |= {name for name, answer in checks.items() if answer}
    assert found == ({refused} if refused else set())


def test_a_report_names_each_offence_once_and_counts_the_rest() -> None:
    flags = " ".join(f"--foo{n} 1" for n in range(10))
    evidence = parse("", [Attachment(name="a.sh", content=f"swift sft --model m {flags} --foo0 1")])
    facts = Facts(evidence)
    found = [Offence(option, "bad", "不对") for option in facts.run.options if option.key.startswith("foo")]
    outcome = report(found, facts)
    assert outcome.value is True
    assert len(outcome.evidence) == 11
    assert outcome.values["offences_en"].endswith("--foo7: bad; and 2 more")
    assert outcome.values["offences_zh"].startswith("--foo0（不对）；--foo1（不对）")
    assert report([], facts).value is False


@every_case(
    ("between", "lost"),
    [("  # --deepspeed zero2 \\\n", True), ("  ...\n", False), ("  # ... and so on\n", False)],
)
def test_a_place_where_something_is_left_out_is_no_flaw(between: str, lost: bool) -> None:
    text = f"swift sft --model m \\\n{between}  --learning_rate 1e-4 \\\n  --dataset d\n"
    facts = Facts(parse("", [Attachment(name="a.sh", content=text)]))
    codes = ("comment_in_command", "missing_backslash", "blank_after_backslash")
    assert bool(shell_problems(facts, codes)) is lost


def test_options_without_a_command_lose_nothing() -> None:
    text = "--advantage_estimator rloo  # the estimator\n--kl_in_reward true  # where the KL goes\n"
    facts = Facts(parse("", [Attachment(name="a.sh", content=text)]))
    assert shell_problems(facts, ("comment_in_command", "missing_backslash", "blank_after_backslash")) == []


def test_files_that_a_command_names_are_read_as_the_command_reads_them() -> None:
    trl = verdicts(a_sh="trl sft --config c.yaml", c_yaml="model_name_or_path: m\nlearning_rat: 1\nnum_processes: 2\n")
    swift = verdicts(a_sh="swift sft c.yaml", c_yaml="model: m\nmax_lengthh: 2\nlearning_rate: 1e-5\n")
    assert (trl["learning_rat"], trl["num_processes"]) == (UNKNOWN, OPEN)
    assert swift["max_lengthh"] == UNKNOWN
