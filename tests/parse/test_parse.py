"""From a whole message to evidence."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.every_case import every_case
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Attachment, Span
from trainmedic.kb.model.run import Unresolved
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.parse.source import Limits

VERL = """set -x
MODEL=${MODEL:-Qwen/Qwen3-8B}
N_GPUS=${N_GPUS:-8}
MICRO=$((64 / N_GPUS))

DATA=(
    data.train_files=$HOME/data/gsm8k/train.parquet
    data.train_batch_size=1024
)
ROLLOUT=(
    actor_rollout_ref.rollout.name=vllm
    actor_rollout_ref.rollout.n=5
)
python3 -m verl.trainer.main_ppo \\
    algorithm.adv_estimator=grpo \\
    actor_rollout_ref.model.path=$MODEL \\
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=$MICRO \\
    "${DATA[@]}" "${ROLLOUT[@]}" \\
    trainer.logger='["console","wandb"]' \\
    trainer.n_gpus_per_node=$N_GPUS "$@" 2>&1 | tee verl.log
"""
SWIFT = """我用 ms-swift 3.1.0 跑 DPO，nll_loss 一直是 nan：

NPROC_PER_NODE=4 \\
CUDA_VISIBLE_DEVICES=0,1,2,3 \\
swift rlhf \\
    --rlhf_type dpo \\
    --model Qwen/Qwen2.5-7B-Instruct \\
    --dataset a.jsonl b#1000 \\
    --sequence_parallel_size 4 \\
    --gradient_accumulation_steps $(expr 16 / 4) \\
    --deepspeed zero3

日志：
{'loss': 0.69, 'grad_norm': 1.0, 'nll_loss': nan, 'epoch': 0.1}
"""


def read(question: str, **files: str) -> Evidence:
    return parse(question, [Attachment(name=name.replace("__", "."), content=text) for name, text in files.items()])


def value(evidence: Evidence, key: str) -> object:
    return next(option.value for option in evidence.run.options if option.key == key)


def spans(evidence: Evidence) -> list[Span]:
    found = [s for run in evidence.runs for o in run.options for s in (o.span, o.key_span, o.value_span) if s]
    found += [s.option.span for run in evidence.runs for s in run.settings.values() if s.option]
    found += [run.anchor for run in evidence.runs if run.anchor]
    found += [row.span for row in evidence.rows] + [m.span for row in evidence.rows for m in row.metrics.values()]
    found += [t.span for t in evidence.tracebacks] + [s.span for s in evidence.signals]
    found += [fact.span for fact in evidence.versions.values() if fact.span]
    return found + [p.span for p in evidence.receipt.problems if p.span]


def check_spans(evidence: Evidence) -> None:
    """Every span lies inside its text and holds exactly what stands there."""
    texts = {source.name: source.text.split("\n") for source in evidence.sources}
    for span in spans(evidence):
        lines = texts[span.attachment]
        part = lines[span.line - 1 : span.end_line]
        assert len(part) == span.end_line - span.line + 1
        part[-1] = part[-1][: span.end_column - 1]
        assert "\n".join(part)[span.column - 1 :] == span.text


def test_a_swift_question_in_chinese() -> None:
    evidence = read(SWIFT)
    run = evidence.run
    assert (run.framework and run.framework.value) == "ms-swift"
    assert (run.algorithm and run.algorithm.value) == "dpo"
    assert run.settings["sequence_parallel"].value == 4
    assert run.settings["gradient_accumulation"].value == 4
    assert evidence.versions["ms-swift"].exact == "3.1.0"
    assert evidence.has("nll_loss_nan")
    assert value(evidence, "NPROC_PER_NODE") == 4
    check_spans(evidence)


def test_a_verl_script_with_arrays_and_defaults() -> None:
    evidence = read("", run__sh=VERL)
    assert (evidence.run.framework and evidence.run.framework.value) == "verl"
    assert value(evidence, "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu") == 8
    assert value(evidence, "data.train_batch_size") == 1024
    assert value(evidence, "trainer.logger") == ("console", "wandb")
    assert isinstance(value(evidence, "data.train_files"), Unresolved)
    assert not evidence.run.partial
    check_spans(evidence)


def test_a_listing_beats_words_and_an_exact_version_beats_a_range() -> None:
    evidence = read(
        "I have transformers 4.40.0 and trl 0.11.0", pip__txt="transformers==4.46.2\n", req__txt="trl>=0.9\n"
    )
    assert evidence.versions["transformers"].exact == "4.46.2"
    assert evidence.versions["trl"].exact == "0.11.0"


def test_the_options_used_bound_the_version_nobody_said() -> None:
    evidence = read("deepspeed --module openrlhf.cli.train_kto --vanilla_loss --pretrain x")
    fact = evidence.versions["openrlhf"]
    assert fact.exact is None
    assert fact.high == "0.3.3"


def test_secrets_are_masked_everywhere_and_counted() -> None:
    secret = "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"
    evidence = read(f"export HF_TOKEN={secret}\nswift sft --model x", a__log=f"token {secret}\n")
    assert secret not in repr(evidence)
    assert sum(count for _, count in evidence.receipt.masked) == 2
    check_spans(evidence)


def test_the_receipt_says_what_was_read() -> None:
    evidence = parse(
        "help",
        [Attachment(name="a.bin", content=b"\x7fELF"), Attachment(name="b.yaml", content="stage: kto\nlora_rank: 8\n")],
    )
    assert [(i.name, i.kind, i.read) for i in evidence.receipt.inputs] == [
        (None, "question", True),
        ("a.bin", "binary", False),
        ("b.yaml", "yaml", True),
    ]
    assert [problem.code for problem in evidence.receipt.problems] == ["binary"]


def test_attachments_over_the_limit_are_named_in_the_receipt() -> None:
    files = [Attachment(name=f"{n}.txt", content="x") for n in range(4)]
    evidence = parse("", files, limits=Limits(attachments=2))
    assert [i.read for i in evidence.receipt.inputs] == [True, True, True, False, False]
    assert [problem.code for problem in evidence.receipt.problems] == ["too_many", "too_many"]


def test_an_empty_attachment_is_read() -> None:
    assert parse("", [Attachment(name="a.txt", content="")]).receipt.inputs[1].kind == "text"


def test_an_unclosed_fence_is_said_and_makes_the_run_partial() -> None:
    evidence = read("```bash\nswift sft --model x --lr 1")
    assert "unclosed_fence" in [problem.code for problem in evidence.receipt.problems]
    assert evidence.run.partial


@every_case("words", ["```yaml\nstage: kto\nlora_rank: 8", "stage: kto\nlora_rank: 8\n"])
def test_a_yaml_in_the_question(words: str) -> None:
    assert read(words).run.settings["lora_rank"].value == 8


def test_inline_deepspeed_json_is_a_mapping_and_its_settings_are_known() -> None:
    evidence = read('swift sft --model x --deepspeed \'{"zero_optimization": {"stage": 2}}\'')
    assert value(evidence, "deepspeed") == {"zero_optimization": {"stage": 2}}
    assert evidence.run.settings["zero_stage"].value == 2


def test_the_learning_rate_configured_tells_warm_up_from_a_low_rate() -> None:
    log = "\n".join(f"{{'loss': 0.69, 'grad_norm': 1.0, 'learning_rate': {n}e-9, 'epoch': 0.{n}}}" for n in range(1, 6))
    evidence = read("swift sft --model x --learning_rate 1e-6", a__log=log)
    assert evidence.has("lr_in_warmup")


def test_a_log_with_tracebacks_and_versions() -> None:
    log = (
        "[INFO] transformers==4.46.2\n{'loss': 0.5, 'epoch': 1.0}\n"
        'Traceback (most recent call last):\n  File "x.py", line 3, in f\n    g()\n'
        "ValueError: bad thing\n"
    )
    evidence = read("why", train__log=log)
    assert [t.exception for t in evidence.tracebacks] == ["ValueError"]
    assert len(evidence.rows) == 1
    check_spans(evidence)


@pytest.mark.slow
def test_a_long_log_is_read_as_a_whole_with_the_users_line_numbers() -> None:
    lines = [f"{{'loss': 0.5, 'grad_norm': 1.0, 'epoch': {n}.0}}" for n in range(100_000)]
    lines[40_000] = "{'loss': 0.0, 'grad_norm': nan, 'epoch': 40000.0}"
    began = time.thread_time()
    evidence = read("nan?", train__log="\n".join(lines))
    assert time.thread_time() - began < 20
    assert not evidence.receipt.inputs[1].truncated
    assert {s.span.line for s in evidence.signals if s.kind == "grad_norm_nan"} == {40_001}
    assert max(row.span.line for row in evidence.rows) == 100_000


@every_case(
    ("text", "expected"),
    [
        ("[rank0]: {'loss': 0.5, 'epoch': 0.1}\r[rank1]: {'loss': 0.6}\n", [(None, 0.5, 1, 11), (None, 0.6, 2, 11)]),
        (
            " 10%|█         | 5/50 [00:10<01:30,  2.0s/it]{'loss': 0.5, 'epoch': 0.1}\r 20%|██ | 10/50 [00:20<01:20]"
            "\r{'loss': 0.4}\r",
            [(5, 0.5, 1, 47), (None, 0.4, 3, 2)],
        ),
        ("2025-01-02 03:04:05,123 - INFO - {'loss': 0.5, 'grad_norm': 2.0}\n", [(None, 0.5, 1, 35)]),
        ("[2025-01-02 03:04:06] [INFO] {'loss': '0.5'}\n", [(None, 0.5, 1, 31)]),
        ("[INFO|trainer.py:123] 2025-01-02 03:04:06,1 >> {'loss': 0.5}\n", [(None, 0.5, 1, 49)]),
        ("\x1b[32m{'loss': \x1b[1m0.5\x1b[0m, 'epoch': 0.2}\x1b[0m\n", [(None, 0.5, 1, 2)]),
        (
            "Train step of epoch [0/1]:   1%|\x1b[32m▏\x1b[0m  | 10/99 [00:10<17:00, 1.0s/it, loss=0.5, acc=0.5]\r"
            "Train step of epoch [0/1]:   1%|▏  | 11/99 [00:11<17:00, 1.0s/it, loss=0.4, acc=0.5]\r",
            [(10, 0.5, 1, 67), (11, 0.4, 2, 67)],
        ),
        (
            "[1,0]<stdout>:{'loss': 0.7, 'epoch': 3}\n[default0]:{'loss': 0.8}\n",
            [(None, 0.7, 1, 16), (None, 0.8, 2, 13)],
        ),
    ],
)
def test_rows_between_bars_prefixes_and_colours_are_read_at_their_place(
    text: str, expected: list[tuple[int | None, float, int, int]]
) -> None:
    found = parse("", [Attachment(name="run.log", content=text)])
    assert [
        (row.step, row.metrics["loss"].value, row.span.line, row.metrics["loss"].span.column) for row in found.rows
    ] == expected


def test_ray_verl_and_openrlhf_lines_in_colour_are_read_at_their_place() -> None:
    text = (
        "\x1b[36m(TaskRunner pid=870)\x1b[0m step:1 - actor/pg_loss:0.01 - critic/rewards/mean:0.9\r\n"
        "[36m(TaskRunner pid=870)[0m step:2 - actor/pg_loss:nan - critic/rewards/mean:0.0\r\n"
        "(ActorModelRayActor pid=12, ip=10.0.0.1) Actor Train epoch [1/1]: 50%|█ | 5/10 [00:01<00:01, act_loss=0.1]\n"
        "\x1b[31m[rank0]: Traceback (most recent call last):\x1b[0m\n"
        '\x1b[31m[rank0]:   File "a.py", line 1, in f\x1b[0m\n\x1b[31m[rank0]: ValueError: bad thing\x1b[0m\n'
    )
    found = parse("", [Attachment(name="run.log", content=text)])
    loss = [row.metrics["policy_loss"].span for row in found.rows]
    assert [row.step for row in found.rows] == [1, 2, 5]
    assert [(span.line, span.column, span.text) for span in loss] == [
        (1, 31, "actor/pg_loss:0.01"), (2, 38, "actor/pg_loss:nan"), (3, 94, "act_loss=0.1"),
    ]  # fmt: skip
    (trace,) = found.tracebacks
    assert (trace.exception, trace.message, trace.rank, trace.span.line) == ("ValueError", "bad thing", 0, 4)


def test_a_cast_of_the_model_overrides_the_dtype_of_its_load() -> None:
    script = (
        "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2-7B', torch_dtype=torch.bfloat16)\n"
        "model.half()\n"
        "trainer = DPOTrainer(model=model, args=DPOConfig(beta=0.1))\n"
    )
    run = parse("", [Attachment(name="train.py", content=script)]).run
    setting = run.settings["weights_dtype"]
    assert setting.value == "fp16"
    assert setting.option is not None
    assert (setting.option.span.line, setting.option.span.column, setting.option.span.text) == (2, 7, "half()")
    assert (run.framework and run.framework.value) == "trl"
    doubtful = parse("", [Attachment(name="t.py", content=script.replace("model.half()", "if a.b: model.half()"))]).run
    assert doubtful.settings["weights_dtype"].value == Unresolved("half()")


def test_a_cast_in_a_second_fence_joins_the_script_it_is_about() -> None:
    text = (
        "```python\nmodel = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2-7B')\n```\nthen\n"
        "```python\nmodel = model.bfloat16()\nargs = DPOConfig(beta=0.1)\n```\n"
    )
    assert [run.settings["weights_dtype"].value for run in parse(text).runs] == ["bf16"]


def test_the_same_input_gives_the_same_evidence() -> None:
    assert repr(read(SWIFT, run__sh=VERL)) == repr(read(SWIFT, run__sh=VERL))


LINES = st.sampled_from(
    [
        *f"{SWIFT}\n{VERL}".split("\n"),
        *("stage: kto", "lora_rank: 8", "```", "```yaml", "{", '  "zero_optimization": {"stage": 3}', "}", "step,loss"),
        *("from trl import X", "args = DPOConfig(", "    beta=0.1,", ")", "TrainingArguments(", "[a]", "x = 1"),
        *("Traceback (most recent call last):", '  File "x", line 1', "ValueError: x", "trl==0.12", "> quoted", ""),
        *('y = "z"', "1,2", "transformers 4.40", "token hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"),
    ]
)
NAMES = st.sampled_from(["a.log", "a.yaml", "a.json", "a.py", "a.sh", "a.txt", "a.toml", "a.ini", "a.csv", "a", "a.md"])


@given(st.lists(LINES, max_size=25).map("\n".join), st.lists(LINES, max_size=15).map("\n".join), NAMES)
def test_any_mixture_can_be_read_and_spans_hold_the_users_text(question: str, text: str, name: str) -> None:
    check_spans(parse(question, [Attachment(name=name, content=text)]))


@given(st.text(max_size=300), st.binary(max_size=300), NAMES)
def test_anything_at_all_can_be_read(question: str, content: bytes, name: str) -> None:
    check_spans(parse(question, [Attachment(name=name, content=content)]))


@every_case(
    "text",
    [
        "With trl 0.16.0 constructing the trainer fails: AttributeError: 'X' object has no attribute 'y'",
        "BitsAndBytesConfig(load_in_4bit=True) under trl 0.16.0 takes as much memory as the bf16 model.",
        "swift export --merge_lora true: no error, but with trl 0.16.0 the output is not quantised",
    ],
)
def test_a_sentence_that_quotes_an_error_or_code_is_still_what_the_user_says(text: str) -> None:
    assert parse(text).versions["trl"].exact == "0.16.0"


def test_what_an_error_prints_is_not_said_by_the_user() -> None:
    assert "trl" not in parse("It stops at once: ImportError: this needs trl 0.16.0 and the new vllm").versions
