"""Which stretches make one run."""

from __future__ import annotations

import time

import pytest

from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.run import Unresolved
from trainmedic.kb.parse.pipeline import parse

KTO = (
    "deepspeed --module openrlhf.cli.train_kto \\\n   --pretrain Qwen/Qwen2-7B \\\n"
    "   --micro_train_batch_size 1 \\\n   --vanilla_loss\n"
)
LF = "stage: {stage}\nmodel_name_or_path: Qwen/Qwen2-7B\nfinetuning_type: lora\nlora_rank: 8\nlearning_rate: 1.0e-6\n"
ZERO = '{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}'
ACCELERATE = (
    "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\ndeepspeed_config:\n"
    "  zero_stage: 2\nmixed_precision: bf16\nnum_processes: 4\n"
)
SCRIPT = (
    "import os\nfrom trl import DPOConfig, DPOTrainer\nfrom peft import LoraConfig\n\n"
    "args = DPOConfig(output_dir='x', beta=0.1, learning_rate=1e-6)\npeft = LoraConfig(r=8, task_type='CAUSAL_LM')\n"
    "trainer = DPOTrainer('Qwen/Qwen2-7B', args=args, peft_config=peft)\n"
)


def read(question: str, **files: str) -> Evidence:
    return parse(question, [Attachment(name=name.replace("__", "."), content=text) for name, text in files.items()])


def kinds(evidence: Evidence) -> list[list[str]]:
    return [[region.kind for region in run.regions] for run in evidence.runs]


def test_without_any_configuration_there_is_one_empty_run() -> None:
    evidence = read("my trl 0.12.0 dpo loss is nan")
    assert len(evidence.runs) == 1
    assert evidence.run.partial
    assert (evidence.run.framework and evidence.run.framework.value) == "trl"


def test_a_command_is_a_run_and_its_anchor_is_the_program() -> None:
    evidence = read(f"nan!\n\n{KTO}")
    assert kinds(evidence) == [["command"]]
    run = evidence.run
    assert run.anchor is not None
    assert (run.anchor.text, run.anchor.line, run.anchor.default) == ("openrlhf.cli.train_kto", 3, True)
    assert run.settings["micro_batch"].value == 1
    assert run.written("vanilla_loss")


TRAINING_LOG = "[INFO] x\nTrainingArguments(\n_n_gpu=1,\nbf16=True,\nlearning_rate=1e-06,\n)\n{'loss': 0.1}\n"
COMMAND_LOG = f"+ {KTO}[INFO] x\n"
NOTE = '{"verdict": "no_fault", "causes": []}'
YAML = LF.format(stage="kto")
DPO = "```python\nargs = DPOConfig(beta=0.1)\n```\nand\n"
SAMPLE = 'My data:\n\n{\n  "prompt": "a",\n  "system": "b"\n}\n\n'


@pytest.mark.parametrize(
    ("question", "files", "expected"),
    [
        pytest.param(question, files, expected, id=said)
        for said, question, files, expected in (
            ("the only YAML joins the only command that wants one",
             f"```bash\nllamafactory-cli train a.yaml\n```\n\n```yaml\n{YAML}```\n", {}, "command yaml"),
            ("a YAML beside a complete command is another run", KTO, {"a__yaml": YAML}, "command, yaml"),
            ("a DeepSpeed file that is not named joins the first run", YAML, {"z__json": ZERO}, "yaml json"),
            ("of whatever kind that run is", KTO, {"z__json": ZERO}, "command json"),
            ("two stretches are one run", f"{DPO}```python\npeft = LoraConfig(r=8)\n```\n", {}, "python python"),
            ("until a trainer comes again", f"{DPO}```python\nargs = DPOConfig(beta=0.5)\n```\n", {}, "python, python"),
            ("or another one comes", f"{DPO}```python\nargs = SFTConfig(packing=True)\n```\n", {}, "python, python"),
            ("a script joins the command that starts it", "accelerate launch train.py", {"train__py": SCRIPT},
             "command python"),
            ("the only command that starts one", "accelerate launch train.py", {"other__py": SCRIPT}, "command python"),
            ("also in the question", f"accelerate launch other.py --x 1\n\n```python\n{SCRIPT}```", {},
             "command python"),
            ("not one that starts none", "trl dpo --beta 0.1", {"other__py": SCRIPT}, "command, python"),
            ("the same command twice is one run", f"{KTO}\nwith more words in between so it is prose\n\n{KTO}", {},
             "command"),
            ("flags beside a command are no run", f"{KTO}\nI tried this too and it did not help me\n\n--bf16\n", {},
             "command"),
            ("a command in a log counts", "", {"a__log": COMMAND_LOG}, "command"),
            ("only where no other is there", "swift sft --model x", {"a__log": COMMAND_LOG}, "command"),
            ("so do the arguments that a program prints", "", {"a__log": TRAINING_LOG}, "dump"),
            ("where nothing else is", KTO, {"a__log": TRAINING_LOG}, "command"),
            ("a dump that holds nothing is no run", "", {"a__log": "TrainingArguments(\n    nothing here \\"}, ""),
            ("a file without any option is a run if nothing else is", "", {"a__json": NOTE}, "json"),
            ("also several of them", "", {"a__json": NOTE, "b__json": '{"findings": 1}'}, "json, json"),
            ("not beside a command", "", {"a__sh": KTO, "b__json": NOTE}, "command"),
            ("unless it is named", "", {"a__sh": "llamafactory-cli train b.json\n", "b__json": NOTE}, "command json"),
            ("a file with an option is a run", "", {"a__sh": KTO, "b__json": '{"a": "x", "learning-rate": 1}'},
             "command, json"),
            ("but comes after what trains", f"{SAMPLE}{KTO}", {}, "command, json"),
        )
    ],
)  # fmt: skip
def test_which_stretches_make_one_run(question: str, files: dict[str, str], expected: str) -> None:
    assert kinds(read(question, **files)) == [run.split() for run in expected.split(",")]


def test_a_yaml_joins_the_command_that_names_it() -> None:
    evidence = read(
        "llamafactory-cli train conf/kto.yaml learning_rate=2e-6",
        kto__yaml=LF.format(stage="kto"),
        sft__yaml=LF.format(stage="sft"),
    )
    assert kinds(evidence) == [["command", "yaml"], ["yaml"]]
    assert evidence.run.settings["learning_rate"].value == 2e-6
    assert not evidence.run.partial


def test_a_command_whose_yaml_was_not_pasted_is_partial() -> None:
    assert read("llamafactory-cli train a.yaml").run.partial
    assert read("trl dpo --config a.yaml").run.partial
    assert not read("swift rlhf --rlhf_type dpo --deepspeed ds_z3.json").run.partial


def test_a_deepspeed_file_joins_the_run_that_names_it() -> None:
    text = LF.format(stage="kto")
    evidence = read("", a__yaml=text + "deepspeed: x/z3.json\n", b__yaml=text, z3__json=ZERO)
    assert kinds(evidence) == [["yaml", "json"], ["yaml"]]
    assert evidence.run.settings["zero_stage"].value == 3
    assert {o.scope for o in evidence.run.options} == {"", "deepspeed"}


def test_an_accelerate_file_joins_the_command_it_launches() -> None:
    evidence = read("accelerate launch --config_file acc.yaml dpo.py --beta 0.1 --bf16", acc__yaml=ACCELERATE)
    assert kinds(evidence) == [["command", "yaml"]]
    assert not evidence.run.partial
    assert kinds(read("accelerate launch dpo.py --beta 0.1", zzz__yaml=ACCELERATE)) == [["command", "yaml"]]


def test_a_hydra_command_with_a_configuration_of_its_own_says_nothing_about_what_it_does_not_set() -> None:
    start = "python3 -m verl.trainer.main_ppo {} trainer.n_gpus_per_node=8"
    assert read(start.format("--config-path=/work/conf --config-name=mine")).run.partial
    assert read(start.format("--config-name=mine")).run.partial
    assert not read(start.format("--config-path=config --config-name=ppo_megatron_trainer.yaml")).run.partial
    assert not read(start.format("")).run.partial


def test_parts_alone_make_one_partial_run() -> None:
    evidence = read("", z3__json=ZERO, acc__yaml=ACCELERATE)
    assert kinds(evidence) == [["json", "yaml"]]
    assert evidence.run.partial


def test_exported_variables_alone_reach_every_run() -> None:
    evidence = read(
        "", env__sh="export NPROC_PER_NODE=8\n", a__sh="swift sft --model x\n", b__sh="swift rlhf --model y\n"
    )
    assert [[o.key for o in run.options] for run in evidence.runs] == [["NPROC_PER_NODE", "model"]] * 2


def test_the_classes_of_one_script_are_one_run() -> None:
    evidence = read("", train__py=SCRIPT)
    assert kinds(evidence) == [["python"]]
    assert (evidence.run.framework and evidence.run.framework.value) == "trl"
    assert evidence.run.settings["lora_rank"].value == 8


def test_training_comes_before_serving_whatever_the_order() -> None:
    evidence = read(
        "CUDA_VISIBLE_DEVICES=0 swift rollout --model a &\n"
        "CUDA_VISIBLE_DEVICES=1 swift rlhf --rlhf_type grpo --model a\n"
        "python convert.py --x 1\npython some.py --y 1\n"
    )
    entries = [run.regions[0].entry.value for run in evidence.runs if run.regions[0].entry]
    assert entries == ["swift rlhf", "some.py", "swift rollout", "convert.py"]
    assert [run.id for run in evidence.runs] == ["run", "run-2", "run-3", "run-4"]


def test_fifteen_configurations_are_fifteen_runs() -> None:
    files = [Attachment(name=f"c{n}.yaml", content=LF.format(stage="sft") + f"seed: {n}\n") for n in range(15)]
    evidence = parse("which one?", files)
    assert [run.settings["seed"].value for run in evidence.runs] == list(range(15))


def test_flags_alone_are_a_partial_run() -> None:
    evidence = read("I use\n\n--micro_train_batch_size 1 --vanilla_loss\n\nand also these\n\n--bf16 --zero_stage 3\n")
    assert kinds(evidence) == [["command", "command"]]
    assert evidence.run.partial


def test_a_file_written_by_the_script_joins_its_command() -> None:
    text = f"cat > ds.json <<EOF\n{ZERO}\nEOF\nswift sft --model x --deepspeed ds.json\n"
    evidence = read("", run__sh=text)
    assert kinds(evidence) == [["command", "json"]]
    assert evidence.run.settings["zero_stage"].value == 3


def test_a_data_sample_is_no_run_beside_a_command() -> None:
    evidence = read(f'My data:\n\n{{\n  "prompt": "a",\n  "chosen": "b"\n}}\n\n{KTO}')
    assert kinds(evidence) == [["command"]]
    assert [region.kind for region in evidence.regions if region.kind != "prose"] == ["json", "command"]


CONFIG = (
    '{"architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2", "hidden_size": 2304, "vocab_size": 256000,\n'
    ' "torch_dtype": "bfloat16"}\n'
)


def test_a_models_own_config_joins_the_run_and_is_never_one() -> None:
    evidence = read("", train__sh="deepspeed --module openrlhf.cli.train_rm --pretrain /data/m\n", config__json=CONFIG)
    assert kinds(evidence) == [["command", "json"]]
    run = evidence.run
    assert (run.model_family and run.model_family.value) == "gemma2"
    assert run.settings["checkpoint_dtype"].value == "bf16"
    assert all(option.scope != "checkpoint" for option in run.options)


def test_a_models_config_alone_is_an_empty_run_of_that_family() -> None:
    (run,) = read("nan in my reward model", config__json=CONFIG).runs
    assert (run.framework, run.options, run.partial) == (None, (), True)
    assert (run.model_family and run.model_family.value) == "gemma2"


def test_the_text_part_of_a_multimodal_config_gives_family_and_dtype() -> None:
    config = (
        '{"architectures": ["PaliGemmaForConditionalGeneration"], "model_type": "paligemma",\n'
        ' "text_config": {"model_type": "gemma2", "torch_dtype": "float32"}, "vision_config": {"model_type": "siglip"}}'
    )
    run = read("", train__sh="swift sft --model /data/m\n", config__json=config).run
    assert run.model_family is not None
    assert (run.model_family.value, run.settings["checkpoint_dtype"].value) == ("gemma2", "fp32")


def test_files_of_the_tokenizer_and_of_generation_are_no_runs() -> None:
    generation = '{"bos_token_id": 1, "eos_token_id": 2, "temperature": 0.6, "transformers_version": "4.44.0"}'
    tokenizer = '{"tokenizer_class": "Qwen2Tokenizer", "model_max_length": 32768, "eos_token": "<|im_end|>"}'
    evidence = read("", t__sh="swift sft --model m\n", generation_config__json=generation, tok__json=tokenizer)
    assert kinds(evidence) == [["command"]]
    assert "temperature" not in {option.key for option in evidence.run.options}


def test_a_variable_behind_a_switch_is_a_word_of_its_own() -> None:
    text = "deepspeed --module openrlhf.cli.train_kto --pretrain Qwen/Qwen2-7B --bf16 $EXTRA --beta 0.1\n"
    run = read("", t__sh=text).run
    bf16 = run.settings["bf16"]
    assert (bf16.value, run.partial, "attention" in run.settings) == (True, True, False)
    assert bf16.option is not None
    assert (bf16.option.raw, bf16.option.span.text, bf16.option.value_span) == (None, "--bf16", None)


def test_a_text_with_a_variable_inside_stays_the_value_of_a_switch() -> None:
    text = "deepspeed --module openrlhf.cli.train_kto --pretrain Qwen/Qwen2-7B --bf16 x$EXTRA --beta 0.1\n"
    run = read("", t__sh=text).run
    assert [option.value for option in run.options if option.key == "bf16"] == [Unresolved("x$EXTRA")]


def test_a_variable_behind_an_option_with_a_value_stays_its_value() -> None:
    text = "deepspeed --module openrlhf.cli.train_kto --pretrain Qwen/Qwen2-7B --beta $BETA --bf16\n"
    run = read("", t__sh=text).run
    assert (run.settings["beta"].value, run.partial) == (Unresolved("$BETA"), False)


def test_a_scorer_beside_the_model_does_not_set_the_dtype() -> None:
    text = (
        "config = PPOConfig(model_name='EleutherAI/gpt-j-6b', learning_rate=1e-5)\n"
        "model = AutoModelForCausalLM.from_pretrained(config.model_name, torch_dtype=torch.bfloat16)\n"
        "model = AutoModelForCausalLMWithValueHead.from_pretrained(model)\n"
        "trainer = PPOTrainer(config, model, ref_model=ref, tokenizer=tok)\n"
        "toxic = RobertaForSequenceClassification.from_pretrained('fb/toxic', torch_dtype=torch.float16)\n"
    )
    run = read("", ppo__py=text).run
    assert run.settings["weights_dtype"].value == "bf16"
    assert run.model is None or "toxic" not in run.model.value


def test_two_trained_loads_that_disagree_leave_the_dtype_unknown() -> None:
    text = (
        "if args.half:\n    model = AutoModelForCausalLM.from_pretrained(n, torch_dtype='half')\n"
        "else:\n    model = AutoModelForCausalLM.from_pretrained(n, torch_dtype='auto')\n"
        "trainer = DPOTrainer(model, args=DPOConfig(output_dir='o'))\n"
    )
    assert "weights_dtype" not in read("", dpo__py=text).run.settings


def test_kto_in_llamafactory_has_its_default_beta_without_a_version() -> None:
    setting = read("", kto__yaml="template: qwen\ndataset: d\n" + LF.format(stage="kto")).run.settings["beta"]
    assert (setting.value, setting.option) == (0.1, None)


def test_an_attached_article_says_what_it_is_about() -> None:
    run = read("why?", article__md="# KTO of Qwen2-7B in OpenRLHF\n\nThe loss becomes nan after a few steps.\n").run
    words = [word and word.value for word in (run.framework, run.algorithm, run.model_family)]
    assert words == ["openrlhf", "kto", "qwen2"]
    assert run.model_family is not None
    assert run.model_family.span is not None
    assert (run.model_family.span.attachment, run.model_family.span.text) == ("article.md", "Qwen2")


def test_a_teaser_at_the_end_of_a_long_article_names_no_model() -> None:
    article = "TRL 奖励模型训练出现 NaN\n" + "原因在于数值精度不足。\n" * 30
    teaser = "SomeVision 4.5 是最新的模型。该模型基于 Qwen3-8B 构建。\n"
    assert read(article + teaser).run.model_family is None
    own = read(article + "模型: Qwen3-8B\n").run.model_family
    assert (own and own.value) == "qwen3"


def test_what_trains_comes_before_the_script_that_scores_for_it() -> None:
    text = "deepspeed ../batch_inference.py --pretrain a --eval_task rm\n"
    text += "deepspeed ../train_sft.py --pretrain b --bf16\n"
    (first, second) = read("", all__sh=text).runs
    assert (first.algorithm and first.algorithm.value) == "sft"
    assert (second.stage and second.stage.value) == "inference"


def test_an_unquoted_variable_is_split_into_words() -> None:
    text = 'MODULE=${MODULE:-"-m verl.trainer.sft_trainer"}\n'
    text += "torchrun --nnodes=1 \\\n ${MODULE} \\\n data.max_length=2048\n"
    run = read("", run__sh=text).run
    assert (run.algorithm and run.algorithm.value) == "sft"
    assert run.settings["max_length"].value == 2048


@pytest.mark.slow
def test_many_configurations_and_commands_are_joined_in_no_time() -> None:
    text = "".join(f"```yaml\nlearning_rate: {n}\n```\n```bash\npython train{n}.py --lr 1\n```\n" for n in range(3_000))
    started = time.thread_time()
    parse(text)
    assert time.thread_time() - started < 60


def test_a_file_joins_every_command_that_names_it() -> None:
    script = "llamafactory-cli train a.yaml\nllamafactory-cli train b.yaml\nllamafactory-cli train conf/a.yaml seed=1\n"
    first, second = "stage: dpo\nlearning_rate: 1.0\n", "stage: kto\nlearning_rate: 2.0\n"
    found = read("", train__sh=script, a__yaml=first, b__yaml=second)
    assert [run.settings["learning_rate"].value for run in found.runs] == [1.0, 2.0, 1.0]


def test_variables_that_a_script_sets_reach_the_command_beside_it() -> None:
    evidence = read("swift rlhf --rlhf_type dpo --model a", env__py="import os\nos.environ['NCCL_DEBUG'] = 'INFO'\n")
    assert kinds(evidence) == [["command", "python"]]
    assert [(o.scope, o.key) for o in evidence.run.options] == [("env", "NCCL_DEBUG"), ("", "rlhf_type"), ("", "model")]


def test_a_json_of_training_options_is_a_run_even_with_a_word_of_the_tokenizer_in_it() -> None:
    evidence = read("", args__json='{"tokenizer_class": "Q", "learning_rate": 1e-6, "model_name_or_path": "a/b"}')
    assert kinds(evidence) == [["json"]]
    assert evidence.run.settings["learning_rate"].value == 1e-6


def test_a_configuration_that_is_printed_between_log_lines_is_the_run_where_nothing_else_is() -> None:
    log = (
        "(TaskRunner pid=1) {'actor_rollout_ref': {'actor': {'kl_loss_coef': 0.001,\n"
        "(TaskRunner pid=1)                                 'ppo_mini_batch_size': 256}},\n"
        "(TaskRunner pid=1)  'data': {'train_batch_size': 1024}}\n"
        "(TaskRunner pid=1) step:1 - actor/kl_loss:0.001\n"
    )
    evidence = read("kl is odd", train__log=log)
    assert kinds(evidence) == [["dump"]]
    assert evidence.run.options[-1].key == "data.train_batch_size"
    assert evidence.run.options[-1].span.line == 3


def test_a_file_of_comments_alone_is_no_run() -> None:
    evidence = read("nan", kto__yaml="# beta: 0.1\n# learning_rate: 1e-6\n")
    assert kinds(evidence) == [[]]
    assert evidence.run.partial
