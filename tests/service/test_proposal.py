"""A case's diff in the user's own files."""

from __future__ import annotations

import pytest

from tests.service.values import case
from tests.shipped import shipped_rules
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.advisor import Advisor
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.ranking.proposal import Proposal, proposal

YAML = """model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
do_train: true
finetuning_type: full
dataset: identity
template: qwen
output_dir: saves/sft
learning_rate: {rate}
{half}: true
"""
RATE = "-learning_rate: 1.0e-4\n+learning_rate: 1.0e-5\n"
BF16 = "-torch_dtype: float16\n-fp16: true\n+torch_dtype: bfloat16\n+bf16: true\n"


def proposed(diff: str, config: str) -> Proposal | None:
    one = case(frameworks=("transformers", "trl"), sections={"en": {"fix": f"Do it.\n\n```diff\n{diff}```"}})
    given = parse("", (Attachment(name="sft.py" if "(" in config else "sft.yaml", content=config),))
    return proposal(one, given, shipped_rules(), lambda question, files: parse(question, files))


def changed(found: Proposal | None) -> list[str]:
    lines = found.effects.patch.split("\n")[2:] if found is not None else []
    return [line for line in lines if line[:1] in ("+", "-")]


@pytest.mark.parametrize(
    ("diff", "rate", "half", "lines"),
    [
        (RATE, "1.0e-3", "bf16", ["-learning_rate: 1.0e-3", "+learning_rate: 1.0e-5"]),
        (RATE, "2.0e-5", "bf16", []),  # nearer to what the diff sets
        (RATE, "5.0e-6", "bf16", []),  # lower already: the diff would raise it
        (RATE, "1.0e-5", "bf16", []),
        (BF16, "1.0e-5", "fp16", ["-fp16: true", "+bf16: true"]),
        (BF16, "1.0e-5", "bf16", []),
        ("+neftune_noise_alpha: 5\n", "1.0e-5", "bf16", ["+neftune_noise_alpha: 5"]),
        ("-max_length: 8192\n+max_length: 4096\n", "1.0e-5", "bf16", []),  # 2048 by default
        ("+no_such_option: 5\n", "1.0e-5", "bf16", []),
        ("-packing: true\n+packing: false\n+neftune_noise_alpha: 5\n", "1.0e-5", "bf16", []),  # it does not pack
        ("+output_dir: saves/other\n+media_dir: /data\n", "1.0e-5", "bf16", []),  # a path of the case's
        # Half of a fix is none: a line that is no option, an option of no framework's, the same value by another name.
        (RATE + '+gradient_checkpointing_kwargs={"use_reentrant": False}\n', "1.0e-3", "bf16", []),
        (RATE + "+no_such_option: 5\n", "1.0e-3", "bf16", []),
        ("-num_epochs: 3\n+num_train_epochs: 3\n", "1.0e-5", "bf16", []),
        ("-model = load(name)\n+model = load(name, seed=1)\n", "1.0e-5", "bf16", []),
    ],
)
def test_a_diff_is_made_where_the_run_has_what_it_takes_out(diff: str, rate: str, half: str, lines: list[str]) -> None:
    assert changed(proposed(diff, YAML.format(rate=rate, half=half))) == lines


def test_what_would_bring_up_another_finding_is_not_proposed() -> None:
    """An epsilon that decides the step size is a fault of its own."""
    assert proposed("+adam_epsilon: 0.1\n", YAML.format(rate="1.0e-5", half="bf16")) is None


def test_the_answer_shows_the_fix_of_its_cause_in_the_users_file(advisor: Advisor) -> None:
    command = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo trainer.save_freq=20\n"
    names = ("run.sh", "pip.txt", "verl.log")
    log = "".join(
        f"step:{n} - actor/entropy_loss:{0.6 - n / 250:.4f} - critic/rewards/mean:0.200 - actor/lr:0.00001\n"
        for n in range(1, 146)
    )
    files = tuple(Attachment(name=n, content=c) for n, c in zip(names, (command, "verl==0.4.1\n", log), strict=True))
    answer = advisor.ask(Ask(question="entropy collapses to zero and the reward stands still", attachments=files))
    assert "trainer.save_freq=20 actor_rollout_ref.actor.clip_ratio_high=0.28" in answer.answer
    assert "GRPOConfig(" not in answer.answer


def test_the_fix_is_made_in_a_call() -> None:
    script = 'args = TrainingArguments("out", bf16=True, gradient_checkpointing=True)\ntrainer = Trainer(model, args)\n'
    found = proposed('+gradient_checkpointing_kwargs={"use_reentrant": False},\n', script)
    assert 'gradient_checkpointing=True, gradient_checkpointing_kwargs={"use_reentrant": False})' in changed(found)[1]
