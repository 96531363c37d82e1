"""Signals: from rows, from the text of logs, from tracebacks, and from what users say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from tests.every_case import every_case
from trainmedic.kb.model.evidence import Signal
from trainmedic.kb.parse.logs import messages, metrics, rows, signal_kinds, signals, tracebacks
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.parse.said import prose
from trainmedic.kb.parse.source import Piece


def found(text: str, *, said: str = "", peak: float | None = None) -> tuple[Signal, ...]:
    piece = Piece(source="train.log", text=text)
    stated = prose.read(Piece(source=None, text=said)).signals
    return signals.signals(rows.read(piece)[0], tracebacks.read(piece), [piece], stated, peak_learning_rate=peak)


def kinds(text: str, *, said: str = "", peak: float | None = None) -> set[str]:
    return {signal.kind for signal in found(text, said=said, peak=peak)}


def log(**columns: Sequence[object]) -> str:
    """A Hugging Face log with one dict per value; ``/`` is written ``__``."""
    names = [name.replace("__", "/") for name in columns]
    return "\n".join(str(dict(zip(names, line, strict=True))) for line in zip(*columns.values(), strict=True))


FALLING = [0.7 - 0.03 * i for i in range(12)]
STEADY = [1.0] * 12

KTO_LINE = (
    "{'loss': 0.5806, 'grad_norm': 0.160, 'learning_rate': 4.2203e-08, 'rewards/chosen': 0.000456, "
    "'rewards/rejected': 5.9e-05,"
    " 'logps/chosen': -1.8, 'logps/rejected': -10.94, 'logits/chosen': -202530000.0, 'logits/rejected': -213160000.0,"
    " 'kl': 11.29}"
)


def test_every_kind_is_explained_in_both_languages() -> None:
    for kind, text in signal_kinds.KINDS.items():
        assert text.en, kind
        assert text.zh, kind
    assert set(signal_kinds.KINDS) >= signal_kinds.BENIGN


def test_every_kind_that_the_code_gives_is_explained() -> None:
    known = {message.kind for message in (*messages.MESSAGES, *prose.STATED, *prose.NAMED_EXCEPTIONS)}
    known |= set(messages.EXCEPTIONS.values())
    assert known <= set(signal_kinds.KINDS)


def test_a_summed_logit_is_huge_and_the_kl_too_but_nothing_is_broken() -> None:
    signs = found(KTO_LINE, peak=1e-6)
    assert [s.kind for s in signs] == ["lr_in_warmup", "logits_huge", "logits_huge", "kl_huge"]
    assert signs[1].span.text == "'logits/chosen': -202530000.0"
    assert signs[1].value == -202530000.0
    (row,) = rows.read(Piece(source=None, text=KTO_LINE))[0]
    assert metrics.finite_except(row, ("logits/",))


def test_the_warm_up_is_not_seen_in_one_row_without_the_configured_rate() -> None:
    assert "lr_in_warmup" not in kinds(KTO_LINE)


def test_a_nan_gradient_next_to_huge_logits_is_seen() -> None:
    assert {"logits_huge", "grad_norm_nan"} <= kinds(KTO_LINE.replace("0.160", "nan"))


def test_a_loss_of_zero_with_a_nan_gradient_is_a_hidden_nan() -> None:
    signs = found("{'loss': 2.31, 'grad_norm': nan, 'step': 1}\n{'loss': 0.0, 'grad_norm': nan, 'step': 2}")
    (hidden,) = [s for s in signs if s.kind == "loss_zero_grad_norm_nan"]
    assert hidden.step == 2
    assert hidden.span.line == 2
    assert hidden.span.text == "'grad_norm': nan"
    (norm,) = [s for s in signs if s.kind == "grad_norm_nan"]
    assert norm.step == 1


@every_case(
    ("row", "kind"),
    [
        ({"loss": "nan"}, "loss_nan"), ({"loss": "inf"}, "loss_inf"),
        ({"policy_loss": "nan", "reward": 1}, "loss_nan"), ({"loss": 1, "grad_norm": "inf"}, "grad_norm_inf"),
        ({"eval_loss": "nan"}, "eval_loss_nan"), ({"loss": 1, "nll_loss": "nan"}, "nll_loss_nan"),
        ({"loss": 1, "rewards/chosen": "nan"}, "reward_nan"), ({"loss": 1, "logps/chosen": "-inf"}, "logps_nan"),
        ({"loss": 1, "logits/chosen": "nan"}, "logits_nan"), ({"loss": 1, "kl": "nan"}, "kl_nan"),
        ({"loss": 1, "kl": -0.5}, "kl_negative"), ({"loss": 1, "kl": 50}, "kl_huge"),
        ({"loss": 1.19e34}, "loss_diverging"), ({"loss": -0.3}, "loss_negative"), ({"loss": 120.0}, "loss_huge"),
        ({"train_runtime": 10, "train_loss": 0.0}, "loss_zero"),
    ],
)  # fmt: skip
def test_one_row_shows(row: Mapping[str, object], kind: str) -> None:
    text = "{" + ", ".join(f"'{name}': {value}" for name, value in row.items()) + "}"
    assert kinds(text) == {kind}


@every_case(
    ("row", "expected"),
    [
        ("{'loss': 0.0, 'grad_norm': 0.0, 'learning_rate': 4e-05, 'epoch': 0.5}", {"loss_zero", "grad_norm_zero"}),
        ("{'loss': 2.3, 'grad_norm': 0.0, 'learning_rate': 4e-05, 'epoch': 0.5}", {"grad_norm_zero"}),
        ("{'loss': 0.0, 'grad_norm': 0.1, 'reward': 0.0, 'reward_std': 0.0}", {"reward_std_zero"}),
        ("{'loss': 0.0, 'grad_norm': 0.1, 'reward': 0.0, 'frac_reward_zero_std': 1.0}", {"reward_std_zero"}),
        ("{'loss': 0.1, 'reward': 0.3, 'reward_std': 0.2, 'completions/clipped_ratio': 0.98}", {"never_stops"}),
        ("{'loss': 0.1, 'reward': 0.3, 'reward_std': 0.2, 'clip_ratio': 0.6}", {"clip_ratio_high"}),
        ("step:5 - actor/entropy:0.004 - critic/rewards/mean:0.5 - actor/grad_norm:0.3", {"entropy_collapse"}),
        ("{'loss': 5123.2, 'grad_norm': 1.5, 'learning_rate': 1e-05}", {"loss_huge"}),
        ("{'loss': 2.31, 'grad_norm': 51234.5, 'learning_ra", {"grad_norm_huge"}),
        ("Step  Training Loss\n10    0.000000\n20    0.000000", {"loss_zero"}),
        ("| Step | Training Loss | Validation Loss |\n|---|---|---|\n| 10 | 2.1 | nan |", {"eval_loss_nan"}),
        ("| metric | value |\n|---|---|\n| loss | nan |\n| grad_norm | nan |", {"loss_nan", "grad_norm_nan"}),
        ("wandb:       train/loss 2.0\nwandb:  train/grad_norm nan", {"grad_norm_nan"}),
        ("Epoch 0:  1%| | 9/900 [00:09<, v_num=0, train_loss_step=nan]", {"loss_nan"}),
        ("iteration 10/99 | lr: 1e-05 | global_step: 10 | reduced_train_loss: nan", {"loss_nan"}),
    ],
)
def test_a_single_row_that_was_copied_shows(row: str, expected: set[str]) -> None:
    assert kinds(row) == expected


@every_case(
    "row",
    [
        "{'loss': 2.3, 'grad_norm': 0.0, 'learning_rate': 0.0, 'epoch': 0.0}",
        "{'loss': 2.3, 'grad_norm': 1.0, 'learning_rate': 0.0, 'epoch': 0.01}",
        "{'loss': 2.3, 'grad_norm': 1.0, 'learning_rate': 0.0, 'epoch': 3.0}",
        "{'loss': 0.0, 'grad_norm': 0.3, 'reward': 0.5, 'reward_std': 0.2, 'kl': 0.0, 'entropy': 0.4}",
        "{'loss': 25.0, 'rewards/chosen': 0.0, 'rewards/rejected': 0.0, 'grad_norm': 80.0}",
        "{'loss': 0.0, 'grad_norm': 0.2, 'rewards/chosen': 5.0, 'rewards/accuracies': 1.0}",
    ],
)
def test_a_first_a_last_or_an_on_policy_row_alone_is_healthy(row: str) -> None:
    assert kinds(row) == {"healthy_log"}


def test_a_table_in_a_question_is_a_log_if_it_holds_an_outcome() -> None:
    assert parse("| Step | Training Loss |\n|---|---|\n| 10 | nan |").has("loss_nan")
    assert parse("| entropy | 0.3 |").rows == ()


def test_a_rate_of_zero_in_both_of_two_rows_is_seen() -> None:
    assert "learning_rate_zero" in kinds(log(loss=[2.0, 2.0], grad_norm=[1.2, 1.1], learning_rate=[0.0, 0.0]))
    assert "learning_rate_zero" not in kinds(log(loss=[2.0, 2.0], grad_norm=[1.2, 1.1], learning_rate=[0.0, 1e-6]))


def test_a_summary_line_is_no_step_of_training() -> None:
    steps = log(loss=[2.0, 1.9, 1.8, 1.7, 1.6, 1.5], grad_norm=[1.0] * 6)
    for average in ("0.0", "'0'", "4.1", "'4.1'"):  # 0 where a resumed run had no step left
        end = f"{{'train_runtime': '12.3', 'train_samples_per_second': 4.0, 'train_loss': {average}, 'epoch': '1.0'}}"
        assert kinds(f"{steps}\n{end}\n") == {"healthy_log"}
    assert kinds(log(loss=[0.0, 0.0]) + "\n{'train_runtime': 12.3, 'train_loss': 0.0}\n") == {"loss_zero"}


def test_evaluation_metrics_of_an_empty_class_are_no_signal_of_their_own() -> None:
    assert kinds("{'eval_loss': 0.5, 'eval_rewards/chosen': nan}") == set()
    assert kinds("{'loss': 0.5, 'something/else': nan}") == set()


def test_on_policy_training_may_have_a_loss_of_zero_or_below() -> None:
    assert kinds(log(loss=[0.0, -0.01, 0.0], reward=[0.1, 0.2, 0.3], grad_norm=[0.1, 0.1, 0.1])) == {"healthy_log"}


@every_case(
    ("columns", "kind"),
    [
        ({"loss": [0.5, 0.0, 0.0]}, "loss_zero"),
        ({"loss": [0.5, 0.4], "grad_norm": [0.0, 0.0]}, "grad_norm_zero"),
        ({"loss": [0.5, 0.4, 0.3], "learning_rate": [0.0, 0.0, 0.0]}, "learning_rate_zero"),
        ({"reward": [0.5, 0.6], "reward_std": [0.0, 0.0]}, "reward_std_zero"),
        ({"reward": [0.5, 0.6], "frac_reward_zero_std": [1.0, 0.96]}, "reward_std_zero"),
        ({"loss": [0.5, 0.4, 0.3], "kl": [0.0, 0.0, 0.0]}, "kl_zero"),
        ({"reward": [0.5, 0.6], "clip_ratio": [0.5, 0.4]}, "clip_ratio_high"),
        ({"reward": [0.5, 0.6], "clipped_ratio": [1.0, 0.95]}, "never_stops"),
        ({"loss": [0.69] * 3}, "loss_flat"),
        ({"loss": [0.69 + 0.0001 * (i % 3) for i in range(12)]}, "loss_flat"),
        ({"loss": [1.0, 0.6, 0.5, 0.5, 0.5, 0.9, 1.2, 1.4, 1.5, 1.5]}, "loss_diverging"),
        ({"loss": [*FALLING[:6], 5.0, *FALLING[6:]]}, "loss_spike"),
        ({"loss": FALLING, "grad_norm": [*STEADY[:5], 90.0, *STEADY[:6]]}, "grad_norm_spike"),
        ({"loss": FALLING, "rewards__accuracies": [0.5, 0.51] * 6}, "accuracy_stuck"),
        ({"reward": [0.5] * 12}, "reward_flat"),
        ({"reward": [0.1, 0.5, 0.9, 0.9, 0.9, 0.5, 0.2, 0.1, 0.1]}, "reward_collapse"),
        ({"reward": [0.1, 0.2, 0.3, 0.4, 0.5], "entropy": [1.0, 0.9, 0.05, 0.04, 0.03]}, "entropy_collapse"),
        ({"reward": [0.1, 0.2, 0.3, 0.4, 0.5], "completion_length": [300, 250, 40, 30, 20]}, "length_collapse"),
        ({"reward": [0.1, 0.2, 0.3, 0.4, 0.5], "completion_length": [100, 100, 300, 400, 400]}, "length_explosion"),
        ({"loss": FALLING[:6], "train_speed(iter/s)": [1.0, 1.0, 1.0, 0.3, 0.2, 0.2]}, "throughput_drop"),
    ],
)
def test_a_series_shows(columns: Mapping[str, Sequence[object]], kind: str) -> None:
    assert kinds(log(**columns)) == {kind}


@every_case(
    "columns",
    [
        {"loss": FALLING, "grad_norm": STEADY},
        {"loss": [0.5, 0.0, 0.4, 0.0]},  # single zeros
        {"loss": [0.69, 0.69]},  # too few to be flat
        {
            "loss": [2.0, 1.5, 1.0, 0.8, 0.7, 0.6, 0.55, 0.5],
            "grad_norm": [9.0, 1, 1, 1, 1, 1, 1, 1],
        },  # the first steps are big
        {"loss": FALLING, "learning_rate": [0.0, *[1e-6] * 10, 0.0]},  # how schedules begin and end
        {"reward": [0.5, 0.6], "clip_ratio": [0.5, 0.1]},
        {"reward": [-0.5, -0.4, -0.45, -0.3, -0.2, -0.25, -0.2, -0.1]},
        {"loss": FALLING, "kl": [0.0, 0.0, *[0.1] * 10]},
        {"loss": FALLING, "rewards__accuracies": [0.5 + 0.03 * i for i in range(12)]},
    ],
)
def test_a_healthy_log_is_said_to_be_healthy(columns: Mapping[str, Sequence[object]]) -> None:
    assert kinds(log(**columns)) == {"healthy_log"}


def test_a_loss_that_does_not_move_in_the_warm_up_is_not_flat() -> None:
    flat = [0.69 + 0.0001 * (i % 3) for i in range(12)]
    rising = [1e-8 * (i + 1) for i in range(12)]
    assert kinds(log(loss=flat, learning_rate=rising)) == {"lr_in_warmup", "healthy_log"}
    assert kinds(log(loss=flat, learning_rate=[1e-8] * 12), peak=1e-6) == {"lr_in_warmup", "healthy_log"}
    assert kinds(log(loss=flat, learning_rate=[1e-6] * 12), peak=1e-6) == {"loss_flat"}
    assert kinds(log(loss=flat, learning_rate=[9.0e-7 + 1e-8 * i for i in range(12)]), peak=1e-6) == {"loss_flat"}


def test_a_rate_that_decays_is_no_warm_up() -> None:
    rates = [1e-6 * (12 - i) / 12 for i in range(11)] + [1e-8]
    assert kinds(log(loss=FALLING, learning_rate=rates)) == {"healthy_log"}


def test_a_rising_margin_is_seen_and_healthy() -> None:
    assert kinds(log(loss=FALLING, rewards__margins=[0.1 * i for i in range(12)])) == {"margins_rising", "healthy_log"}
    assert kinds(log(loss=FALLING, rewards__margins=[0.1] * 12)) == {"healthy_log"}


def test_zeros_that_verl_rounded_are_no_zeros() -> None:
    zeros = " - ".join(f"actor/{name}:0.000" for name in ("lr", "pg_loss", "grad_norm", "kl_loss"))
    line = "step:{} - " + zeros + " - critic/rewards/mean:0.{}\n"
    assert kinds("".join(line.format(i, i) for i in range(1, 5))) == {"healthy_log"}


def test_what_ray_lists_under_every_dead_worker_is_no_sign() -> None:
    text = "[raylet] exits. (1) the process was killed by the OOM killer due to high memory usage, (2) ray stop --force"
    assert kinds(f"{text}\n2026-01-01 INFO step 1\n") == set()
    assert "cpu_oom_killed" in kinds("INFO oom-kill: constraint=MEMCG\n")


def test_a_copied_line_and_a_log_are_two_series() -> None:
    text = "loss: 0.0\n\n{'loss': 0.0, 'epoch': 1}"
    assert "loss_zero" not in kinds(text)


@every_case(
    ("text", "kind"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "oom"),
        ("  exitcode  : -9 (pid: 42)", "cpu_oom_killed"),
        ("some line\nKilled", "cpu_oom_killed"),
        ("[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3)", "nccl_timeout"),
        ("NCCL error: unhandled system error", "nccl_error"),
        ("RuntimeError: CUDA error: device-side assert triggered", "cuda_error"),
        ("CUBLAS_STATUS_EXECUTION_FAILED when calling", "cublas_error"),
        ("ValueError: Attempting to unscale FP16 gradients.", "fp16_unscale_error"),
        ("Exception: Current loss scale already at minimum - cannot decrease scale anymore.", "loss_scale_collapse"),
        (
            "Could not find response key in the following instance, this instance will be ignored in loss calculation",
            "labels_all_ignored",
        ),
        ("size mismatch for score.weight: copying a param", "shape_mismatch"),
        ("train_kto.py: error: unrecognized arguments: --vanilla_loss", "unrecognized_argument"),
        ("error: argument --torch_dtype: invalid choice: 'half' (choose from 'auto')", "unrecognized_argument"),
        ("ModuleNotFoundError: No module named 'flash_attn'", "missing_module"),
        ("ImportError: cannot import name 'x' from 'y'", "import_error"),
        ("AssertionError", "assertion"),
        ("NotImplementedError: SP is not supported", "not_implemented"),
        ("ValueError: bad", "value_error"),
        ("TypeError: bad", "type_error"),
        ("KeyError: 'labels'", "key_error"),
        ("FileNotFoundError: [Errno 2] No such file", "file_not_found"),
        ("requests.exceptions.ConnectionError: HTTPSConnectionPool", "connection_error"),
        ("Token indices sequence length is longer than the specified maximum sequence length", "tokenizer_warning"),
        ("[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 1, reducing to 1", "loss_scale_collapse"),
    ],
)
def test_the_text_of_a_log_shows(text: str, kind: str) -> None:
    assert kind in kinds(text)
    assert not any(signal.stated for signal in found(text))


def test_a_message_may_mean_more_than_its_exception() -> None:
    signs = found(
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\nRuntimeError: CUDA out of memory. Tried'
    )
    assert {"oom"} == {s.kind for s in signs}
    assert "type_error" in kinds("TypeError: __init__() got an unexpected keyword argument 'vanilla_loss'")
    assert "unrecognized_argument" in kinds("TypeError: __init__() got an unexpected keyword argument 'vanilla_loss'")


def test_a_few_overflows_are_how_a_loss_scale_is_found() -> None:
    line = "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {}, reducing to {}\n"
    start = "".join(line.format(2**i, 2 ** (i - 1)) for i in range(20, 15, -1))
    assert kinds(start) == set()
    many = "".join(line.format(2**i, 2 ** (i - 1)) for i in range(30, 18, -1))
    (signal,) = found(many)
    assert signal.kind == "loss_scale_collapse"
    assert "number 10" in signal.detail
    assert found("OVERFLOW! Rank 0 Skipping step. Attempted loss scale: e+e, reducing to ..") == ()


def test_a_loss_scale_that_settles_is_no_fault_and_excuses_what_the_skipped_steps_repeat() -> None:
    skipped = "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {}, reducing to {}\n"
    still = log(loss=[2.4], grad_norm=[0.0], learning_rate=[0.0]) + "\n"
    start = "".join(skipped.format(2**i, 2 ** (i - 1)) + still for i in range(32, 16, -1))
    going_on = log(
        loss=FALLING, grad_norm=[0.9 - i / 99 for i in range(12)], learning_rate=[1e-6 * i for i in range(12)]
    )
    assert kinds(start + going_on, said="grad_norm is 0, is this normal") == {"steps_skipped", "healthy_log"}
    assert "loss_scale_collapse" in kinds(start)
    assert "steps_skipped" not in kinds(start + going_on.replace("'loss': 0.7,", "'loss': nan,"))
    assert "steps_skipped" not in kinds(start + still * 12)
    last = skipped.format(32768, 16384)
    assert "steps_skipped" in kinds(start + going_on + "\n" + going_on + "\n" + last), "the newest step was skipped"
    again = going_on.replace("\n", "\n" + skipped.format(16384, 8192))
    assert "loss_scale_collapse" in kinds(start + going_on + "\n" + again)


def test_what_the_user_says_is_weaker_and_marked() -> None:
    (signal,) = found("", said="loss 变成 nan")
    assert signal.kind == "loss_nan"
    assert signal.stated


def test_a_broken_log_or_a_complaint_makes_no_healthy_log() -> None:
    assert "healthy_log" not in kinds(log(loss=FALLING), said="got OOM")
    assert "healthy_log" not in kinds(log(loss=FALLING, something=[*STEADY[:11], math.nan]))
    assert found("") == ()


def test_signals_stand_in_the_order_of_the_text_and_come_once() -> None:
    signs = found(log(loss=["nan", "nan"], grad_norm=["inf", "inf"]).replace("'nan'", "nan"))
    assert [s.kind for s in signs] == ["loss_nan", "grad_norm_inf"]


NAMES = st.sampled_from(
    ["loss", "grad_norm", "learning_rate", "kl", "rewards/accuracies", "entropy", "logits/chosen", "eval_loss"]
)


@given(st.lists(st.dictionaries(NAMES, st.floats(), min_size=1), max_size=20), st.none() | st.floats())
def test_judging_rows_never_raises_and_every_signal_points_into_the_log(
    dicts: list[dict[str, float]], peak: float | None
) -> None:
    text = "\n".join(map(str, dicts))
    for signal in found(text, peak=peak):
        assert signal.kind in signal_kinds.KINDS
        assert signal.span.text in text


@every_case(
    ("text", "kind"),
    [
        ("store->get('0') got error: Socket Timeout", "nccl_timeout"),
        ("UserWarning: KL divergence is starting to become negative: -5.27 - this might be a precursor", "kl_negative"),
    ],
)
def test_words_of_a_log_are_a_signal(text: str, kind: str) -> None:
    assert kind in kinds(text)


def test_the_warning_on_a_negative_kl_counts_where_it_is_quoted() -> None:
    assert "kl_negative" in kinds("", said="PPO出现KL divergence is starting to become negative: -5.27")


@every_case(
    "line",
    [
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
        "ValueError: Prefill out of memory. Try to lower your batch size.",
        "Decode out of memory. Try to lower your batch size.",
    ],
)
def test_sglangs_words_for_a_full_device_are_out_of_memory(line: str) -> None:
    assert "oom" in kinds(f"[2025-07-01 10:00:31 TP0] {line}\n")


def test_sglangs_decode_lines_are_no_rows_and_no_fault() -> None:
    text = (
        "[2025-07-01 10:00:01 TP0] KV Cache is allocated. #tokens: 961234, K size: 25.67 GB, V size: 25.67 GB\n"
        "[2025-07-01 10:00:20 TP0] Decode batch. #running-req: 12, #token: 12345, token usage: 0.53, cuda graph: True,"
        " gen throughput (token/s): 1234.56, #queue-req: 3\n"
    )
    assert kinds(text) == set()


def test_a_signal_says_what_the_numbers_of_the_log_are_in_both_languages() -> None:
    text = "".join(f"{{'loss': 1.5, 'grad_norm': {56.0 if n == 12 else 1.2}}}\n" for n in range(16))
    spike = next(signal for signal in found(text) if "spike" in signal.kind)
    assert spike.observed is not None
    assert spike.observed.en == "grad_norm is 56, the median of 16 rows 1.2"
    assert spike.observed.zh == "grad_norm 为 56，16 行的中位数是 1.2"


def test_the_signal_of_an_error_stands_on_the_line_that_names_the_error() -> None:
    text = 'Traceback (most recent call last):\n  File "a.py", line 1\nRuntimeError: loading:\n\tsize mismatch for x\n'
    assert {(s.kind, s.span.line) for s in found(text) if s.span.text.startswith("Run")} == {("shape_mismatch", 3)}
