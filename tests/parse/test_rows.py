"""What the row reader makes of logs of every trainer, and of what is no log."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.every_case import every_case
from trainmedic.kb.model.evidence import Row
from trainmedic.kb.parse.logs import metrics, rows
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.parse.source import Piece


def read(text: str) -> tuple[Row, ...]:
    return rows.read(Piece(source="train.log", text=text))[0]


def values(row: Row) -> dict[str, float]:
    return {name: metric.value for name, metric in row.metrics.items()}


def test_a_hugging_face_dict_is_one_row_with_its_numbers() -> None:
    (row,) = read("{'loss': 0.58, 'grad_norm': nan, 'learning_rate': 4.2e-08, 'rewards/chosen': 0.0004, 'epoch': 0.01}")
    assert row.style == "hf"
    assert row.step is None
    assert not row.evaluation
    assert math.isnan(row.metrics["grad_norm"].value)
    assert values(row)["learning_rate"] == 4.2e-08
    assert row.metrics["grad_norm"].span.text == "'grad_norm': nan"
    assert row.metrics["grad_norm"].span.column == 16
    assert row.span.text.startswith("'loss'")
    assert row.span.text.endswith("0.01")


def test_numbers_may_be_quoted_or_wrapped_by_numpy_and_torch() -> None:
    (row,) = read(
        "{'loss': '0.5', 'nll_loss': DTensor(0.5), 'grad_norm': tensor(0.25, device='cuda:0'),"
        " 'kl': np.float64(-inf), 'entropy': Infinity}"
    )
    assert values(row) == {"loss": 0.5, "nll_loss": 0.5, "grad_norm": 0.25, "kl": -math.inf, "entropy": math.inf}
    assert row.metrics["grad_norm"].span.text == "'grad_norm': tensor(0.25, device='cuda:0')"
    assert row.metrics["kl"].span.text == "'kl': np.float64(-inf)"


def test_an_unclosed_wrapper_ends_at_its_number() -> None:
    (row,) = read("{'loss': tensor(0.25, device")
    assert row.metrics["loss"].span.text == "'loss': tensor(0.25"


@pytest.mark.parametrize(
    ("text", "style", "step", "expected"),
    [
        pytest.param(*case, id=said)
        for said, *case in (
            ("beyond half precision", "{'loss': 1.19e+34, 'epoch': 0}", "hf", None, {"loss": 1.19e34, "epoch": 0}),
            ("rank prefixes and times are no metrics",
             "[rank0]: 2024-05-01 10:20:30,123 (Worker pid=77, ip=10.0.0.1) {'loss': 0.5}", "hf", None, {"loss": 0.5}),
            ("ms-swift states its step as a fraction",
             "{'loss': 0.5, 'global_step/max_steps': '5/1000', 'percentage': '0.50%', 'elapsed_time': '1m 29s'}",
             "hf", 5, {"loss": 0.5}),
            ("LLaMA-Factory's JSON lines have current steps",
             '{"current_steps": 10, "total_steps": 100, "loss": NaN, "lr": 1e-6, "elapsed_time": "0:01:00"}',
             "jsonl", 10, {"step": 10, "total_steps": 100, "loss": math.nan, "learning_rate": 1e-6}),
            ("OpenRLHF writes them behind its bar",
             "Train step of epoch [0/1]:   1%|▏  | 10/1000 [00:10<17:00, 1.0s/it, loss=nan, chosen_reward=0.1, acc=1]",
             "postfix", 10, {"loss": math.nan, "rewards/chosen": 0.1, "rewards/accuracies": 1}),
            ("Megatron's line",
             " iteration      122/  250000 | consumed samples:  1249 | learning rate: 9.150E-06 | lm loss: 2.5E+00 |"
             " loss scale: 1.0 | grad norm: 0.231 |", "megatron", 122,
             {"consumed samples": 1249, "learning_rate": 9.15e-6, "loss": 2.5, "loss scale": 1, "grad_norm": 0.231}),
            ("a notebook's table", "| Step | Training Loss | Validation Loss |\n|---:|---:|---:|\n| 10 | 0.5 | 0.6 |\n",
             "csv", 10, {"step": 10, "loss": 0.5, "eval_loss": 0.6}),
            ("W&B's export names its run before the metric",
             '"Step","my run - train/loss","my run - train/loss__MIN"\n"5","0.5","0.5"', "csv", 5,
             {"step": 5, "loss": 0.5}),
            ("one metric a line",
             'learning_rate: 1e-6\nloss: 0.58\n- "logits/chosen": -202530000.0,\nkl = 11.29\nepoch: 1',
             "hf", None,
             {"learning_rate": 1e-6, "loss": 0.58, "logits/chosen": -202530000.0, "kl": 11.29, "epoch": 1}),
            ("the final metrics are no step",
             "***** train metrics *****\n  epoch      =     3.0\n  train_loss =   0.1234\n  train_runtime = 0:10:00",
             "user", None, {"epoch": 3.0, "train_loss": 0.1234}),
            ("a dict over several lines", "{'loss': 0.5,\n 'grad_norm': 1.0, 'kl': 0.1,\n 'epoch': 0.1}\nnothing", "hf",
             None, {"loss": 0.5, "grad_norm": 1.0, "kl": 0.1, "epoch": 0.1}),
            ("a second name does not replace the first", "{'loss': 0.5, 'train/loss': 0.4, 'loss': 0.3}", "hf", None,
             {"loss": 0.5}),
            ("a step is an integer", "{'loss': 0.5, 'step': nan}", "hf", None, {"loss": 0.5, "step": math.nan}),
            ("a step told before the row", "step 30: loss=0.5", "user", 30, {"loss": 0.5}),
            ("also with other words", "Epoch 1, global_step 40 - loss: 0.5", "user", 40, {"loss": 0.5}),
        )
    ],
)  # fmt: skip
def test_a_row_of_every_layout(text: str, style: str, step: int | None, expected: dict[str, float]) -> None:
    (row,) = read(text)
    assert (row.style, row.step) == (style, step)
    assert values(row) == pytest.approx(expected, nan_ok=True)


def test_rows_interleaved_with_a_progress_bar_take_its_step() -> None:
    text = (
        "  1%|▏ | 10/1000 [00:10<17:00, 1.0s/it]{'loss': 0.5, 'epoch': 0.1}  1%|▏ | 11/1000 [00:11<17:00]{'loss': 0.4}"
    )
    assert [(row.step, values(row)["loss"]) for row in read(text)] == [(10, 0.5), (11, 0.4)]


def bar(step: int, of: int = 1000) -> str:
    return f"  1%|▏         | {step}/{of} [00:10<17:00,  1.01s/it]"


def steps(*lines: str) -> list[int | None]:
    return [row.step for row in read("\n".join(lines))]


def test_a_row_on_the_line_after_the_trainers_bar_takes_its_step() -> None:
    lines = (bar(10), "{'loss': 0.5, 'epoch': 0.1}", bar(10), bar(20), "", "   ", "{'loss': 0.4, 'epoch': 0.2}")
    assert steps(*lines) == [10, 20]
    assert steps("  0%|  | 1/500 [1 day, 2:03:04<?, ?it/s]", "{'loss': 0.5}") == [1]


def test_a_bar_that_does_not_count_the_steps_of_training_gives_none() -> None:
    row = "{'loss': 0.5, 'epoch': 0.1}"
    assert steps("Map: 100%|██████| 1000/1000 [00:01<00:00, 900.00 examples/s]", row) == [None]
    assert steps("Loading checkpoint shards: 100%|███| 4/4 [00:05<00:00,  1.3s/it]", row) == [None]
    assert steps("100%|███| 4/4 [00:05<00:00, 900.0 examples/s]", row) == [None]
    assert steps(bar(0), row) == [None]
    assert steps(bar(1001), row) == [None]
    assert steps(bar(10), "Some weights were not used", row) == [None]
    assert steps(bar(10, 10), "{'eval_loss': 0.6, 'epoch': 0.1}") == [None]
    assert steps(bar(10), row, row) == [10, None]
    assert steps(bar(10), row, bar(10), row, bar(50, 50), row, bar(9), row, bar(11), row) == [10, None, None, None, 11]
    assert steps(bar(10), f"{row} {row}") == [None, None]
    assert steps(bar(10), "{'loss': 0.5, 'step': 7}") == [7]
    assert steps(bar(10), "step:1 - actor/pg_loss:0.5 - actor/grad_norm:0.1") == [1]
    assert steps("", "", "", "", "", row) == [None]


def test_an_evaluation_dict_on_the_same_line_is_a_row_of_its_own() -> None:
    train, evaluation = read("{'loss': 0.5, 'epoch': 0.1}{'eval_loss': 0.6, 'epoch': 0.1}")
    assert not train.evaluation
    assert evaluation.evaluation
    assert values(evaluation) == {"eval_loss": 0.6, "epoch": 0.1}


def test_a_verl_line_is_a_row() -> None:
    (row,) = read(
        "(TaskRunner pid=870) step:83 - actor/entropy_loss:0.317 - actor/pg_loss:np.float64(0.01) - actor/kl_loss:nan"
        " - actor/lr:0.000 - critic/rewards/mean:0.9 - response_length/mean:330.4 - val-core/gsm8k/mean@1:0.5"
    )
    assert row.style == "dashed"
    assert row.step == 83
    found = values(row)
    assert found["policy_loss"] == 0.01
    assert found["entropy"] == 0.317
    assert found["reward"] == 0.9
    assert math.isnan(found["kl"])
    assert found["completion_length"] == 330.4
    assert found["val-core/gsm8k/mean@1"] == 0.5


def test_the_dicts_that_slime_logs_are_rows_of_its_rollouts_and_steps() -> None:
    evidence = parse(
        "(Actor pid=41) [2025-09-01 12:00:00] rollout 3: {'rollout/raw_reward': 0.41, 'rollout/log_probs': -0.3, "
        "'rollout/response_lengths': 5123.2, 'rollout/truncated': 0.12}\n"
        "(Actor pid=41) [2025-09-01 12:00:09] step 3: {'train/loss': 0.1, 'train/pg_loss': 0.1, "
        "'train/pg_clipfrac': 0.0, 'train/entropy_loss': 0.34, 'train/grad_norm': 0.23, 'train/lr-pg_0': 1e-06}\n"
    )
    rollout, step = evidence.rows
    assert (rollout.step, step.step) == (3, 3)
    assert values(rollout).items() >= {"reward": 0.41, "completion_length": 5123.2, "clipped_ratio": 0.12}.items()
    assert values(step).keys() == {"loss", "policy_loss", "clip_ratio", "entropy", "grad_norm", "learning_rate"}
    assert (evidence.run.framework and evidence.run.framework.value) == "slime"


def test_a_heading_states_the_step_of_the_metrics_that_are_listed_below_it() -> None:
    heading = "========================= Step {}/9 =========================\n\n📊 Training Results:\n"
    listed = "  • Loss: 0.5\n  • Generation KL Error: 0.0011\n  • Avg Reward: 0.4321\n\n⏱️  Timing:\n"
    found = parse("".join(heading.format(step) + listed for step in (3, 4))).rows
    assert [(row.step, values(row)["loss"], values(row)["reward"]) for row in found] == [
        (3, 0.5, 0.4321),
        (4, 0.5, 0.4321),
    ]


def test_megatrons_validation_line_is_a_row_of_evaluation() -> None:
    (row,) = read(
        " validation loss at iteration 1000 on validation set | lm loss value: 2.5E+00 | lm loss PPL: 1.2E+01 |"
    )
    assert (row.step, row.evaluation, values(row)["eval_loss"]) == (1000, True, 2.5)


def test_a_megatron_line_without_an_outcome_is_no_row() -> None:
    assert read(" iteration 1/ 10 | consumed samples: 4 | log interval: 3 |") == ()


def test_trainer_state_rows_keep_their_steps() -> None:
    text = """{
 "epoch": 0.5,
 "log_history": [
  {
   "epoch": 0.01,
   "grad_norm": 1.5,
   "loss": 0.69,
   "step": 10
  },
  {
   "epoch": 0.02,
   "eval_loss": 0.68,
   "step": 20
  }
 ]
}"""
    first, second = read(text)
    assert first.style == "trainer_state"
    assert first.step == 10
    assert values(first)["loss"] == 0.69
    assert second.evaluation
    assert second.step == 20
    assert (first.span.line, first.span.end_line) == (5, 8)


def test_a_dict_cut_off_ends_where_its_numbers_end() -> None:
    first, second = read("{'loss': 0.5, 'grad_norm': 1.0,\nKilled\n{'loss': 0.4,\n{'x': 1}")
    assert values(first) == {"loss": 0.5, "grad_norm": 1.0}
    assert values(second) == {"loss": 0.4}


def test_a_csv_with_a_header_is_read_until_it_ends() -> None:
    found = read("step,train/loss,grad_norm,name\n1,0.5,nan,a\n2,0.4,0.2,b\n\nloss went away")
    assert [row.step for row in found] == [1, 2]
    assert found[0].style == "csv"
    assert math.isnan(values(found[0])["grad_norm"])
    assert found[1].metrics["loss"].span.text == "0.4"
    assert found[1].metrics["loss"].span.line == 3


def test_a_header_without_rows_is_nothing() -> None:
    assert read("step,loss\nend of file") == ()
    assert read("loss,what happened to it") == ()


def test_a_metric_that_comes_again_starts_the_next_row() -> None:
    assert [values(row) for row in read("loss: 0.5\nkl: 1.0\nloss: 0.4\nkl: 2.0")] == [
        {"loss": 0.5, "kl": 1.0},
        {"loss": 0.4, "kl": 2.0},
    ]


@every_case(
    ("text", "expected"),
    [
        ("我这里 loss：0.58，grad_norm：0.16，kl：11.29。", {"loss": 0.58, "grad_norm": 0.16, "kl": 11.29}),
        (
            "I see loss 0.58, grad_norm 0.160 and logits/chosen −2.0e8",
            {"loss": 0.58, "grad_norm": 0.16, "logits/chosen": -2e8},
        ),
        ("the loss is 0.69 at the start", {"loss": 0.69}),
        ("step 30: loss=0.5", {"loss": 0.5}),
    ],
)
def test_a_row_copied_into_a_sentence_is_read(text: str, expected: dict[str, float]) -> None:
    (row,) = read(text)
    assert row.style == "user"
    assert values(row) == expected


@every_case(
    "text",
    [
        "loss is not nan, it is fine", "I saw loss 0 twice", "no loss 0.5, grad_norm 0.1 here", "learning_rate: 1e-6",
        "eval_steps: 100\nper_device_eval_batch_size: 1\nlogging_steps: 5", "clip_ratio: 0.2",
        "the log has learning_rate 1.0e-6, lr 2.0",
        "swift rlhf --rlhf_type kto --learning_rate 1e-6 --desirable_weight 1.0",
        "actor_rollout_ref.actor.entropy_coeff=0 actor_rollout_ref.actor.clip_ratio=0.2",
        '{"zero_optimization": {"stage": 3}, "fp16": {"loss_scale": 0, "initial_scale_power": 16}}', "my loss: 10%",
        "loss: 5/10", "",
    ],
)  # fmt: skip
def test_configuration_and_talk_make_no_row(text: str) -> None:
    assert read(text) == ()


def test_very_many_metrics_in_one_row_are_bounded() -> None:
    body = ", ".join(f"'rewards/r{i}': {i}" for i in range(500))
    assert len(read("{" + body + "}")[0].metrics) == 300


def test_a_long_log_keeps_its_ends_and_everything_that_stands_out() -> None:
    lines = [f"{{'loss': 0.5, 'grad_norm': {1.0 + i % 7}, 'step': {i}}}" for i in range(9000)]
    lines[4321] = "{'loss': 0.0, 'grad_norm': nan, 'step': 4321}"
    lines[5000] = "{'loss': 0.5, 'grad_norm': 900.0, 'step': 5000}"
    found, problems = rows.read(Piece(source="train.log", text="\n".join(lines)))
    steps = [row.step for row in found]
    assert {0, 4320, 4321, 5000, 8999} <= set(steps)
    assert steps == sorted(steps, key=lambda step: step or 0)
    assert len(found) < 5000
    (problem,) = problems
    assert problem.code == "rows_thinned"
    assert "9000" in problem.message


@given(st.floats(), st.floats(), st.integers(min_value=0, max_value=10**9))
def test_a_printed_dict_reads_back(loss: float, norm: float, step: int) -> None:
    (row,) = read(str({"loss": loss, "grad_norm": norm, "step": step}))
    for name, value in (("loss", loss), ("grad_norm", norm)):
        read_back = row.metrics[name].value
        assert read_back == value or (math.isnan(read_back) and math.isnan(value))
    assert row.step == step


@every_case(
    ("raw", "name"),
    [
        ("train/loss", "loss"), ("LM Loss", "loss"), ("Training Loss", "loss"), ("Validation Loss", "eval_loss"),
        ("eval/loss", "eval_loss"), ("eval/rewards/chosen", "eval_rewards/chosen"), ("reject_reward",
        "rewards/rejected"),
        ("grad-norm", "grad_norm"), ("response_length/clip_ratio", "clipped_ratio"), ("actor/ppo_kl", "ppo_kl"),
        ("my_Metric", "my_Metric"), ("eval_steps", "eval_steps"), ("completions/mean_length", "completion_length"),
    ],
)  # fmt: skip
def test_names_are_normalised(raw: str, name: str) -> None:
    assert metrics.normalise(raw) == name


def test_the_first_and_the_last_value_of_a_metric_can_be_asked() -> None:
    found = read("{'loss': 0.5, 'kl': 1}\n{'loss': 0.4}")
    first, last = metrics.first(found, "loss"), metrics.last(found, "loss")
    assert (first and first.value) == 0.5
    assert (last and last.value) == 0.4
    assert metrics.last(found, "reward") is None
    assert metrics.first(found, "reward") is None
    assert [metric.value for metric in metrics.series(found, "kl")] == [1.0]


def test_whether_the_rest_of_a_row_is_healthy_can_be_asked() -> None:
    (row,) = read("{'loss': 0.5, 'logits/chosen': inf}")
    assert not metrics.finite_except(row)
    assert metrics.finite_except(row, ("logits/",))


@every_case(("text", "rounded"), [("actor/lr:0.000", True), ("'learning_rate': 0.0", False), ("lr: 1e-6", False)])
def test_a_zero_of_fixed_decimals_may_be_a_small_number(text: str, rounded: bool) -> None:
    (row,) = read("step:1 - loss:0.5 - " + text)
    assert metrics.rounded_zero(row.metrics["learning_rate"]) is rounded


def test_medians_do_not_overflow_and_ignore_a_single_outlier() -> None:
    assert metrics.median([1.0, 3.0, 2.0]) == 2.0
    assert metrics.median([1e308, 1.7e308]) < math.inf
    assert metrics.spread([1.0, 1.0, 1.0, 100.0]) == 0.0


def test_the_line_of_a_program_in_front_of_a_row_is_no_metric() -> None:
    (row,) = read("[INFO|callbacks.py:131] 2025-01-02 03:04:05,123 >> {'loss': 0.5, 'epoch': 0.1}")
    assert values(row) == {"loss": 0.5, "epoch": 0.1}
    assert row.span.column == 53


def test_torchtunes_lines_are_rows() -> None:
    bar, logged = read(
        "1|2|Loss: 1.72:   0%|          | 2/808 [00:09<2:02:14,  9.09s/it]\n"
        "Step 3 | loss:1.68 lr:5.9e-06 tokens_per_second_per_gpu:520.1 grad_norm:nan approx_policy_kl:0.002"
    )
    assert (bar.step, values(bar)) == (2, {"loss": 1.72})
    assert logged.step == 3
    assert values(logged)["learning_rate"] == 5.9e-06
    assert values(logged)["ppo_kl"] == 0.002


def test_mmengines_lines_are_rows() -> None:
    (row,) = read(
        "01/29 21:36:02 - mmengine - INFO - Iter(train) [  20/720]  lr: 1.9000e-04  eta: 0:32:01  time: 2.8037"
        "  data_time: 0.0071  memory: 13969  loss: 2.6049  grad_norm: 0.9361"
    )
    assert row.step == 20
    assert (values(row)["loss"], values(row)["grad_norm"], values(row)["learning_rate"]) == (2.6049, 0.9361, 1.9e-4)


def test_the_place_in_the_code_before_a_row_is_no_metric() -> None:
    (row,) = read(
        "2025-10-10 10:00:00.123 | INFO | xtuner.v1.train.trainer:_log_step:1040 - Epoch 1 Step 12/1000 lr: 6.0e-05"
        " reduced_llm_loss: 1.23456789, local_loss: 1.3 grad_norm: 0.51 max_memory: 20.10 GB tgs: 3318.0"
    )
    assert row.step == 12
    assert values(row)["loss"] == 1.23456789
    assert "_log_step" not in row.metrics


def test_rolls_lines_are_rows() -> None:
    (row,) = read(
        '[driver] [0 / 1]{"system/step": 3, "critic/rewards/mean": 0.42, "tokens/response_length/mean": 812.5,'
        ' "actor/pg_loss@sum": -0.0012, "actor/approxkl@sum": 0.0003, "val-core/mean@1": 0.5}'
    )
    assert row.step == 3
    assert values(row) == {
        "step": 3, "reward": 0.42, "completion_length": 812.5, "policy_loss": -0.0012, "ppo_kl": 0.0003,
        "val-core/mean@1": 0.5,
    }  # fmt: skip


def test_a_printed_dict_is_one_row_whatever_its_first_line_holds() -> None:
    (row,) = read(
        "(entrypoint pid=12) INFO | skyrl.train.utils.tracking:log:189 - Step 7: \n"
        "(entrypoint pid=12) {'generate/avg_num_tokens': '512.3000',\n"
        "(entrypoint pid=12)  'policy/final_loss': '0.0012',\n"
        "(entrypoint pid=12)  'reward/avg_raw_reward': '0.4100',\n"
        "(entrypoint pid=12)  'trainer/global_step': 7}"
    )
    assert row.step == 7
    assert values(row) == {"completion_length": 512.3, "loss": 0.0012, "reward": 0.41, "step": 7}


def test_the_run_in_the_name_of_a_column_is_no_part_of_the_metric() -> None:
    assert metrics.normalise("good run - train/loss") == "loss"


def test_a_header_of_many_thousand_characters_is_no_table() -> None:
    assert read("step,loss," + "a" * 30_000 + "\n1,0.5,2\n") == ()
