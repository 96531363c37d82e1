"""Answers that once misled: each is a class of paste, made as small as it still shows the point."""

from __future__ import annotations

import math

from tests.every_case import every_case
from tests.service.values import fired
from trainmedic.kb.model.place import Attachment
from trainmedic.service.advisor import Advisor
from trainmedic.service.dialogue.request import Ask
from trainmedic.ui.chat.texts import examples

FULL_FP16 = """model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
do_train: true
finetuning_type: full
deepspeed: ds_z3_config.json
template: qwen
per_device_train_batch_size: 1
learning_rate: 1.0e-3
lr_scheduler_type: cosine
warmup_ratio: 0.03
fp16: true
flash_attn: fa2
"""
ZERO_ROW = "{'loss': '0', 'grad_norm': '0', 'learning_rate': '2e-05', 'epoch': '0.01'}\n"


def row(loss: object, grad_norm: object, epoch: float) -> str:
    return f"{{'loss': {loss}, 'grad_norm': {grad_norm}, 'learning_rate': 0.0009, 'epoch': {epoch:.2f}}}\n"


def grows_and_breaks() -> str:
    """A log of 640 good steps, the gradients growing over the last 80, then NaN."""
    steady = "".join(row(1.6 - n / 90, 1.4 + (n % 3) / 10, n / 40) for n in range(56))
    grown = (1.7, 2.9, 4.4, 7.8, 13.1, 22.5, 37.9, 56.0)
    growing = "".join(row(1.2 + n / 4, norm, 1.4 + n / 40) for n, norm in enumerate(grown))
    scale = "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 2, reducing to 1\n"
    return steady + growing + "".join(row(0.0, "nan", 1.6 + n / 40) + scale for n in range(6))


def files(**contents: str) -> tuple[Attachment, ...]:
    return tuple(Attachment(name=name.replace("__", "."), content=content) for name, content in contents.items())


def test_gradients_that_grew_for_eighty_steps_are_no_failure_of_the_first_step(advisor: Advisor) -> None:
    pasted = files(sft__yaml=FULL_FP16, train__log=grows_and_breaks())
    for question in ("loss became nan, why?", "loss became nan, weights are fp16, card is A100 80G"):
        answer = advisor.ask(Ask(question=question, attachments=pasted))
        assert answer.causes[0].case_id != "llamafactory-sdpa-first-step-nan"
        assert "update-blow-up" in {node.id for node in answer.differential.nodes}
        assert not {"setting:weights_dtype", "setting:attention"} & {item.fact for item in answer.missing}
        confident = [cause for cause in answer.causes if cause.confidence == "high"]
        assert all(cause.evidence_grade != "reported" for cause in confident)


def test_a_switch_of_the_log_is_no_repair_of_an_explosion(advisor: Advisor) -> None:
    pasted = files(sft__yaml=FULL_FP16, train__log=grows_and_breaks())
    answer = advisor.ask(Ask(question="the loss went to 0 and grad_norm is nan", attachments=pasted))
    assert "logging_nan_inf_filter: false" not in answer.answer.partition("### Also found in your input")[0]
    assert "is gone" not in answer.answer
    assert "+logging_nan_inf_filter: false" in answer.answer


def test_what_the_log_hides_never_leads_before_the_rate_that_a_check_found(advisor: Advisor) -> None:
    pasted = files(sft__yaml=FULL_FP16.replace("fp16: true", "bf16: true"), train__log=grows_and_breaks())
    answer = advisor.ask(Ask(question="the loss went to 0 and grad_norm is nan", attachments=pasted))
    assert answer.causes[0].case_id == "series-learning-rate-too-high"
    assert "+learning_rate: 1.0e-5" in answer.answer.split("```")[1]


@every_case(
    ("question", "said"),
    [
        ("which learning rate for LoRA SFT of a 7B model?", "1e-4 to 2e-4"),
        ("全参 DPO 的学习率怎么选？", "5e-7 到 1e-6"),
    ],
)
def test_which_learning_rate_is_usual_is_told_before_the_card(advisor: Advisor, question: str, said: str) -> None:
    answer = advisor.ask(Ask(question=question))
    assert 0 < answer.answer.find(said) < answer.answer.find("`float`")


@every_case("question", ["train_a works, train_b does not, why?"])
def test_a_run_that_is_compared_with_one_that_works_is_not_called_healthy(advisor: Advisor, question: str) -> None:
    good = FULL_FP16.replace("fp16: true", "bf16: true").replace("1.0e-3", "1.0e-5")
    pasted = files(train_a__yaml=good, train_b__yaml=good.replace("1.0e-5", "2.0e-5"))
    answer = advisor.ask(Ask(question=question, attachments=pasted))
    assert answer.verdict == "need_input"
    assert "learning_rate" in next(section.body for section in answer.sections if section.kind == "differences")


@every_case("question", ["", "loss is 0 from the first step, grad_norm 0", "SFT with TRL: loss is 0"])
def test_a_loss_of_exactly_zero_is_not_blamed_on_images_that_nobody_spoke_of(advisor: Advisor, question: str) -> None:
    answer = advisor.ask(Ask(question=question, attachments=files(train__log=ZERO_ROW * 24)))
    assert answer.verdict in ("answered", "need_input")
    assert answer.causes[0].case_id != "swift-multimodal-loss-zero-truncated"
    assert "no-trained-token" in {node.id for node in answer.differential.nodes}


def test_a_long_log_is_judged_as_a_whole(advisor: Advisor) -> None:
    rows = [row(2.0 - n / 40_000, 1.0 + (n % 5) / 10, n / 9_000) for n in range(27_000)]
    asked = "is this run ok?"
    assert advisor.ask(Ask(question=asked, attachments=files(big__log="".join(rows)))).verdict == "no_fault"
    rows[10_000] = row(9.0, math.nan, 10_000 / 9_000)
    answer = advisor.ask(Ask(question=asked, attachments=files(big__log="".join(rows))))
    assert answer.verdict != "no_fault"
    assert ("grad_norm_nan", 10_001) in {(signal.kind, signal.evidence.line) for signal in answer.signals}


@every_case(
    "question",
    [
        "my training is bad, help", "something is wrong with my run, please help", "my training does not work",
        "training problem", "it doesn't train properly", "我的训练效果不好，帮帮我",
    ],
)  # fmt: skip
def test_a_vague_complaint_is_asked_back(advisor: Advisor, question: str) -> None:
    answer = advisor.ask(Ask(question=question))
    assert answer.verdict == "need_input"
    assert {"framework", "algorithm", "config", "log"} <= {item.fact for item in answer.missing}


@every_case("question", ["hello", "what can you do?", "你好"])
def test_a_greeting_is_told_what_this_is_for(advisor: Advisor, question: str) -> None:
    answer = advisor.ask(Ask(question=question))
    assert answer.verdict == "not_in_kb"
    assert not answer.causes
    assert "pip list" in answer.answer
    assert len(answer.answer) < 400


def test_a_faulty_configuration_alone_is_answered_with_its_faults(advisor: Advisor) -> None:
    answer = advisor.ask(Ask(question="", attachments=files(x__yaml=FULL_FP16 + "logging_steps: 0\n")))
    assert "trainer-logging-steps-zero" in fired(answer)
    assert answer.verdict != "not_in_kb"
    assert "logging_steps" in answer.answer


def test_an_answer_that_asks_back_shows_the_fixes_of_what_is_wrong_in_the_configuration(advisor: Advisor) -> None:
    config = files(x__yaml=FULL_FP16 + "logging_steps: 0\n")
    answer = advisor.ask(Ask(question="training quality is bad, what is wrong?", attachments=config))
    assert answer.verdict == "need_input"
    assert "+logging_steps: 10" in answer.answer


@every_case("question", ["please help, my boss is angry, the weather is bad and loss is nan", "loss is nan"])
def test_a_symptom_alone_makes_no_cause_more_than_a_candidate(advisor: Advisor, question: str) -> None:
    answer = advisor.ask(Ask(question=question))
    assert answer.verdict == "need_input"
    assert {cause.confidence for cause in answer.causes} == {"low"}


def test_what_a_log_shows_to_train_was_not_refused_at_the_start(advisor: Advisor) -> None:
    kto = examples("en")[0]
    pasted = tuple(Attachment(name=file.name, content=str(file.content)) for file in kto.files)
    assert "option-of-other-command" not in fired(advisor.ask(Ask(question=kto.question, attachments=pasted)))
    unstarted = tuple(file for file in pasted if file.name != "train.log")
    assert "option-of-other-command" in fired(advisor.ask(Ask(question=kto.question, attachments=unstarted)))


@every_case(
    "file", [Attachment(name="model.bin", content=bytes(range(256)) * 40), Attachment(name="empty.log", content="")]
)
def test_a_file_without_text_is_named(advisor: Advisor, file: Attachment) -> None:
    answer = advisor.ask(Ask(question="", attachments=(file,)))
    assert answer.verdict == "need_input"
    assert f"cannot read {file.name}" in answer.answer
    assert answer.missing


def test_the_sign_of_a_traceback_is_the_line_that_names_the_exception(advisor: Advisor) -> None:
    trace = (
        "Traceback (most recent call last):\n"
        '  File "/home/u/train.py", line 88, in <module>\n'
        "    trainer.train()\n"
        '  File "/opt/site-packages/trl/trainer/grpo_trainer.py", line 812, in _get_per_token_logps\n'
        "    logits = model(input_ids=input_ids).logits\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 18.55 GiB.\n"
    )
    answer = advisor.ask(Ask(question=f"Why does this happen?\n\n{trace}"))
    assert {signal.evidence.line for signal in answer.signals if signal.kind == "oom"} == {8}
    assert not {"algorithm", "stage", "framework"} & {item.fact for item in answer.missing}


def stuck(rank: int, number: int, op: str) -> str:
    call = f"WorkNCCL(SeqNum={number}, OpType={op}, NumelIn=16384, NumelOut=131072, Timeout(ms)=1800000)"
    return f"[rank{rank}]: [Rank {rank}] Watchdog caught collective operation timeout: {call} ran for 1800094 ms.\n"


def test_a_hang_names_the_rank_to_look_at_and_what_it_said_last(advisor: Advisor) -> None:
    log = "[WARNING] rank 5: shard 3981 is empty after filtering, skipping the batch\n[INFO] rank 5: waiting\n"
    log += "".join(stuck(rank, 233, "ALLGATHER") for rank in (0, 1, 2)) + stuck(5, 232, "ALLREDUCE")
    pasted = files(nccl__log=log, ds__json='{"zero_optimization": {"stage": 3}, "train_batch_size": 8}')
    first = advisor.ask(Ask(question="training hangs, NCCL timeout, why?", attachments=pasted, conversation_id="h"))
    last = "rank 5 before that: nccl.log:1:1"
    assert last in first.answer
    assert not {"setting:fsdp", "setting:model"} & {item.fact for item in first.missing}
    asked = advisor.ask(Ask(question="which rank is guilty?", conversation_id="h"))
    assert asked.answer.startswith("**Look at rank 5.**")
    assert last in asked.answer
    assert len(asked.answer) < 700


def test_a_lock_file_alone_is_answered_with_its_defects_and_what_to_upgrade(advisor: Advisor) -> None:
    lock = files(requirements__txt="trl==0.16.1\ntransformers==4.51.3\npeft==0.15.1\ndeepspeed==0.16.4\ntorch==2.6.0\n")
    answer = advisor.ask(Ask(question="", attachments=lock, conversation_id="l"))
    assert (answer.verdict, answer.causes, answer.missing) == ("explained", (), ())
    assert "known defects of these versions" in answer.answer
    assert "### What to upgrade" in answer.answer
    assert "lock file or `pip list`" not in answer.answer
    asked = advisor.ask(Ask(question="which version of trl should I install?", conversation_id="l"))
    assert "instead of 0.16.1" in asked.answer


def test_no_page_or_question_is_about_another_rollout_engine_than_the_runs(advisor: Advisor) -> None:
    script = (
        "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo \\\n  actor_rollout_ref.rollout.name=vllm \\\n"
        "  actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct trainer.n_gpus_per_node=8\n"
    )
    answer = advisor.ask(Ask(question="verl GRPO OOM, what should I change?", attachments=files(run__sh=script)))
    assert not [cause.title for cause in answer.causes if "sglang" in cause.title.lower()]
    assert "version:sglang" not in {item.fact for item in answer.missing}


def test_the_learning_rate_of_full_training_on_an_adapter_outranks_bad_pairs(advisor: Advisor) -> None:
    config = FULL_FP16.replace("stage: sft", "stage: dpo").replace("type: full", "type: lora").replace("fp16", "bf16")
    rows = "".join(
        f"{{'loss': 0.693{n % 3}, 'grad_norm': 2.1, 'learning_rate': 5e-08, 'rewards/accuracies': 0.5}}\n"
        for n in range(40)
    )
    pasted = files(dpo__yaml=config.replace("1.0e-3", "5.0e-8"), train__log=rows)
    answer = advisor.ask(Ask(question="DPO loss stays at 0.693, accuracy 0.5", attachments=pasted))
    assert answer.causes[0].case_id == "preference-adapter-learning-rate-tiny"
    assert "+learning_rate: 5.0e-6" in answer.answer


def test_the_asked_fact_that_tells_most_comes_first_with_a_command_to_copy(advisor: Advisor) -> None:
    answer = advisor.ask(Ask(question="my training does not work"))
    shown = [section for section in answer.sections if not section.folded and section.kind == "ask"]
    assert [len(section.items) for section in shown] == [1]


def test_who_asks_to_stop_a_healthy_run_is_told_whether_the_loss_still_falls(advisor: Advisor) -> None:
    rows = [row(2.0 - n / 100, 1.0, n / 90) for n in range(100)]
    advisor.ask(Ask(question="is this run ok?", attachments=files(train__log="".join(rows)), conversation_id="s"))
    answer = advisor.ask(Ask(question="can I stop early?", conversation_id="s"))
    assert answer.answer.startswith("**The loss still falls**")
