"""A fix is written into the call it belongs to, in that call's words."""

from __future__ import annotations

from tests.every_case import every_case
from tests.shipped import shipped_rules
from trainmedic.kb.engine.checker import check
from trainmedic.kb.engine.edits import apply
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.fixes import _Plan
from trainmedic.kb.engine.patches import with_patches
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.run import Scalar
from trainmedic.kb.parse.pipeline import parse

SCRIPT = (
    'model = AutoModelForSequenceClassification.from_pretrained("Qwen/Qwen2-7B", torch_dtype=torch.half)\n'
    'tok = AutoTokenizer.from_pretrained("Qwen/Qwen2-7B", use_fast=True, padding_side="left", a=1, b=2)\n'
    "peft_config = LoraConfig(task_type=TaskType.CAUSAL_LM, r=16)\n"
    'trainer = RewardTrainer(model=model, args=RewardConfig(output_dir="o"), peft_config=peft_config)\n'
)
KTO = "deepspeed --module openrlhf.cli.train_kto --pretrain Qwen/Qwen2-7B --bf16"
TRL = "accelerate launch reward_modeling.py --model_name_or_path a/b --use_peft --lora_r 8 --torch_dtype float16"


def fixed(name: str, text: str, setting: str, value: Scalar, **versions: str) -> str:
    listing = [Attachment(name="pip.txt", content="".join(f"{p}=={v}\n" for p, v in versions.items()))]
    found = parse("", [Attachment(name=name, content=text), *(listing if versions else [])])
    plan = _Plan(Facts(found, found.run))
    plan.set(setting, value)
    return apply(plan.edits(), text)


@every_case(
    ("text", "setting", "value", "old", "new"),
    [
        (SCRIPT, "peft_task_type", "SEQ_CLS", "task_type=TaskType.CAUSAL_LM", 'task_type="SEQ_CLS"'),
        (SCRIPT, "weights_dtype", "bf16", "torch_dtype=torch.half", "torch_dtype=torch.bfloat16"),
        (SCRIPT, "weights_dtype", "auto", "torch_dtype=torch.half", 'torch_dtype="auto"'),
        (SCRIPT, "learning_rate", 1e-6, 'output_dir="o"', 'output_dir="o", learning_rate=1e-6'),
        (
            SCRIPT.replace("task_type=TaskType.CAUSAL_LM, ", ""),
            "peft_task_type",
            "SEQ_CLS",
            "LoraConfig(r=16)",
            'LoraConfig(r=16, task_type="SEQ_CLS")',
        ),
        (
            SCRIPT.replace(", torch_dtype=torch.half", ""),
            "weights_dtype",
            "bf16",
            'Classification.from_pretrained("Qwen/Qwen2-7B"',
            'Classification.from_pretrained("Qwen/Qwen2-7B", torch_dtype=torch.bfloat16',
        ),
    ],
)
def test_a_setting_is_written_into_the_call_it_belongs_to(
    text: str, setting: str, value: Scalar, old: str, new: str
) -> None:
    assert text.count(old) == 1
    assert fixed("train.py", text, setting, value) == text.replace(old, new)


LOADED = 'model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2-7B")\n'
END = 'trainer = Trainer(model=model, args=TrainingArguments(output_dir="o"))\n'


@every_case(
    ("cast", "fixed_cast"),
    [
        ("model.half()", "model.to(torch.bfloat16)"),
        ("model = model.to('cuda').to(torch.float16)", "model = model.to('cuda').to(torch.bfloat16)"),
        ("model.to(device, dtype=torch.half)", "model.to(device, dtype=torch.bfloat16)"),
        ("model.to(dtype=chosen())", "model.to(dtype=torch.bfloat16)"),
    ],
)
def test_a_dtype_given_by_a_cast_is_changed_in_the_cast(cast: str, fixed_cast: str) -> None:
    text = f"{LOADED}{cast}\n{END}"
    assert fixed("train.py", text, "weights_dtype", "bf16") == f"{LOADED}{fixed_cast}\n{END}"


def test_what_does_not_fit_into_a_cast_is_described_and_nothing_is_broken() -> None:
    text = f"{LOADED}model.half()\n{END}"
    assert fixed("train.py", text, "weights_dtype", "auto") == text
    found = parse("", [Attachment(name="train.py", content=text)])
    plan = _Plan(Facts(found, found.run))
    plan.unset("weights_dtype")
    assert plan.edits() == ()
    assert fixed("train.py", text, "attention", "flash2") == text.replace(
        '"Qwen/Qwen2-7B"', '"Qwen/Qwen2-7B", attn_implementation="flash_attention_2"'
    )


def test_a_new_option_fits_the_last_release_with_the_command() -> None:
    assert fixed("t.sh", KTO + "\n", "micro_batch", 2) == KTO + " --micro_train_batch_size 2\n"
    one = KTO + " --micro_train_batch_size 1\n"
    assert fixed("t.sh", one, "micro_batch", 2) == KTO + " --micro_train_batch_size 2\n"


def test_the_users_key_stays_unless_the_stated_release_lacks_it() -> None:
    text = TRL + "\n"
    assert fixed("t.sh", text, "weights_dtype", "bf16") == text.replace("float16", "bfloat16")
    assert fixed("t.sh", text, "weights_dtype", "bf16", trl="0.12.0") == text.replace("float16", "bfloat16")
    newest = text.replace("--torch_dtype float16", "--dtype bfloat16")
    assert fixed("t.sh", text, "weights_dtype", "bf16", trl="1.9.0") == newest


def test_a_setting_of_a_library_s_own_file_is_written_in_that_library_s_words() -> None:
    text = '{"zero_optimization": {"stage": 3}, "fp16": {"enabled": true}}\n'
    run = "stage: kto\nmodel_name_or_path: a/b\nfinetuning_type: full\ndeepspeed: ds.json\n"
    found = parse("", [Attachment(name="kto.yaml", content=run), Attachment(name="ds.json", content=text)])
    plan = _Plan(Facts(found, found.run))
    plan.set("deepspeed_fp16", False)
    assert apply(plan.edits(), text) == text.replace("true", "false")


def test_a_flag_with_hyphens_keeps_its_spelling() -> None:
    text = "swift rlhf --rlhf_type kto --model a/b --learning-rate 1e-4\n"
    assert fixed("t.sh", text, "learning_rate", 1e-6) == text.replace("1e-4", "1e-6")


ARGUMENTS = 'args = TrainingArguments("out", bf16=True, gradient_checkpointing=True)\ntrainer = Trainer(model, args)\n'
SFT = 'args = SFTConfig(output_dir="o", max_seq_length=2048, packing=True)\ntrainer = SFTTrainer(m, args=args)\n'


def test_a_setting_within_an_argument_is_written_with_it_unless_the_argument_is_there() -> None:
    text = fixed("train.py", ARGUMENTS, "gradient_checkpointing_reentrant", False)
    made = 'gradient_checkpointing=True, gradient_checkpointing_kwargs={"use_reentrant": False})'
    assert text == ARGUMENTS.replace("gradient_checkpointing=True)", made)
    given = ARGUMENTS.replace("bf16=True", "bf16=True, gradient_checkpointing_kwargs=KWARGS")
    assert fixed("train.py", given, "gradient_checkpointing_reentrant", False) == given


@every_case(
    ("name", "text", "pins", "old", "new"),
    [
        ("sft.py", SFT, "trl==0.20.0", "max_seq_length", "max_length"),
        (
            "run.sh",
            "swift sft --model a/b --train_type lora --dataset x\n",
            "ms-swift==4.1.0",
            "train_type",
            "tuner_type",
        ),
        (
            "run.sh",
            "swift sft --model a/b --train_type=lora --dataset x\n",
            "ms-swift==4.1.0",
            "train_type",
            "tuner_type",
        ),
    ],
)
def test_a_renamed_option_keeps_its_value(name: str, text: str, pins: str, old: str, new: str) -> None:
    found = parse("", [Attachment(name=name, content=text), Attachment(name="pip.txt", content=f"{pins}\n")])
    report = with_patches(check(found, shipped_rules()), found, shipped_rules(), parse)
    fix = next(finding for finding in report.fired if finding.rule_id == "option-renamed").fixes[0]
    dashes = "--" if name == "run.sh" else ""
    assert fix.text.en == f"Write `{dashes}{new}` for `{dashes}{old}`."
    assert apply(fix.edits, text) == text.replace(old, new)
    assert fix.clears == ("option-renamed",)


def test_a_renamed_switch_is_only_described() -> None:
    text = "deepspeed --module openrlhf.cli.train_sft --pretrain a/b --dataset x --flash_attn\n"
    found = parse(
        "", [Attachment(name="run.sh", content=text), Attachment(name="pip.txt", content="openrlhf==0.9.0\n")]
    )
    report = check(found, shipped_rules())
    fix = next(finding for finding in report.fired if finding.rule_id == "option-renamed").fixes[0]
    assert (fix.edits, "attn_implementation" in fix.text.en) == ((), True)
