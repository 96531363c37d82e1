"""What users say in words, and what they deny."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.every_case import every_case
from trainmedic.kb.parse.logs.messages import Message
from trainmedic.kb.parse.said import prose
from trainmedic.kb.parse.said.prose import ProseFacts
from trainmedic.kb.parse.source import Piece


def read(text: str) -> ProseFacts:
    return prose.read(Piece(source=None, text=text))


def stated(text: str) -> set[str]:
    return {signal.kind for signal in read(text).signals}


def known(text: str) -> dict[str, tuple[str | None, str | None, str | None]]:
    return {fact.package: (fact.exact, fact.low, fact.high) for fact in read(text).versions}


@every_case(
    ("text", "expected"),
    [
        ("flash-attn 2.6.1", {"flash-attn": ("2.6.1", None, None)}),
        ("Flash Attention 2.6.1 with transformers==4.43.3", {"flash-attn": ("2.6.1", None, None), "transformers":
        ("4.43.3", None, None)}),
        ("我用的是 trl 0.12.0", {"trl": ("0.12.0", None, None)}),
        ("transformers版本是4.43.3,torch版本2.5.1+cu124", {"transformers": ("4.43.3", None, None), "torch": ("2.5.1",
        None, None)}),
        ("0.12.0版本的trl", {"trl": ("0.12.0", None, None)}),
        ("swift v3.1.0", {"ms-swift": ("3.1.0", None, None)}),
        ("llama factory (0.9.1)", {"llamafactory": ("0.9.1", None, None)}),
        ("I upgraded transformers to 4.46.3, still nan", {"transformers": ("4.46.3", None, None)}),
        ("我升级到 trl 0.12.0 还是不行", {"trl": ("0.12.0", None, None)}),
        ("升级到 vllm 0.16.0 之后报错", {"vllm": ("0.16.0", None, None)}),
        ("after upgrading to trl 0.12.0 it hangs", {"trl": ("0.12.0", None, None)}),
        ("精度换成 fp16 也不行。我的 torch 是 2.0.0", {"torch": ("2.0.0", None, None)}),
        ("torch2.4.0 transformers4.44.2", {"torch": ("2.4.0", None, None), "transformers": ("4.44.2", None, None)}),
        ("**trl version:** 0.19.1", {"trl": ("0.19.1", None, None)}),
        ("it requires trl>=0.13, I have 0.12.0 installed", {"trl": ("0.12.0", None, None)}),
        ("要求 peft>=0.11，我装的是 0.10.0", {"peft": ("0.10.0", None, None)}),
        ("torch 降到 2.3.1 也没用", {"torch": ("2.3.1", None, None)}),
        ("With deepspeed=0.16.4 it also runs. Now on deepspeed 0.17.6", {"deepspeed": ("0.17.6", None, None)}),
    ],
)  # fmt: skip
def test_a_version_in_use_is_exact(text: str, expected: dict[str, tuple[str | None, str | None, str | None]]) -> None:
    assert known(text) == expected


def test_two_numbers_leave_the_patch_release_open() -> None:
    assert known("transformers is 4.43") == {"transformers": (None, "4.43", "4.44.dev0")}


@every_case("text", ["transformers v5", "transformers 5.x"])
def test_a_major_version_leaves_all_its_releases_open(text: str) -> None:
    assert known(text) == {"transformers": (None, "5", "6.dev0")}


def test_the_engine_of_vllm_is_no_version() -> None:
    assert known("vllm V1 engine") == {}


@every_case(
    ("text", "low", "high"),
    [
        ("tried transformers 4.43.1 and 4.45.2", "4.43.1", "4.45.2"),
        ("transformers 4.43 、4.45 都试过", "4.43", "4.46.dev0"),
        ("transformers 4.45.2 fails, transformers 4.43.1 fails too", "4.43.1", "4.45.2"),
        ("with transformers<4.45", None, "4.45.dev0"),
        ("transformers 4.45.0 or newer", "4.45.0", None),
        ("transformers 4.45.0 以下", None, "4.45.0"),
        ("transformers 4.43.1, and also transformers>=4.45", "4.43.1", None),
    ],
)
def test_several_versions_or_a_comparison_are_a_range(text: str, low: str | None, high: str | None) -> None:
    assert known(text) == {"transformers": (None, low, high)}


@every_case(
    "text",
    [
        "升级到 transformers 4.45.0 以后会好吗", "please upgrade to transformers 4.45.0",
        "transformers 升级到 4.45.0 就好了", "it is fixed in trl 0.13.0", "建议用 trl 0.13.0",
        "not on transformers 4.45.0", "transformers 4", "mytrl 0.12.0 and trl/0.12.0.tgz", "trl 0.5% better",
        "I have 2.5.1",
    ],
)  # fmt: skip
def test_a_target_or_a_part_of_a_word_is_no_version_in_use(text: str) -> None:
    assert known(text) == {}


def test_a_version_has_its_place_and_reason() -> None:
    (fact,) = read("first line\nwith trl 0.12.0 here").versions
    assert fact.span is not None
    assert (fact.span.line, fact.span.column, fact.span.text) == (2, 6, "trl 0.12.0")
    assert "trl 0.12.0" in fact.reason


@every_case(
    ("text", "kinds"),
    [
        ("loss is nan", {"loss_nan"}),
        ("loss 变成 nan 了", {"loss_nan"}),
        ("NaN loss in training", {"loss_nan"}),
        ("nan 的 loss", {"loss_nan"}),
        ("训练的时候 nan 了", {"loss_nan"}),
        ("loss 和 grad_norm 都是 nan", {"loss_nan", "grad_norm_nan"}),
        ("loss looks fine while the gradient norm is NaN", {"grad_norm_nan"}),
        ("grad norm goes to inf", {"grad_norm_inf"}),
        ("loss inf", {"loss_inf"}),
        ("loss is 0.5 and grad_norm nan", {"grad_norm_nan"}),
        ("显存不足", {"oom"}),
        ("奖励模型训练时遇到 NaN", {"loss_nan"}),
        ("梯度裁剪也没用,NaN 还在", {"loss_nan"}),
        ("inf values somewhere", set()),
        ("nll_loss 一直 nan 但是 loss 正常", {"nll_loss_nan"}),
        ("eval loss is nan", {"eval_loss_nan"}),
        ("rewards are nan; logps nan. logits nan", {"reward_nan", "logps_nan", "logits_nan"}),
        ("kl nan", {"kl_nan"}),
        ("loss 一直是 0, grad norm nan", {"loss_zero", "grad_norm_nan", "loss_zero_grad_norm_nan"}),
        ("my loss is 0.5", set()),
        ("loss stuck at 0.69", {"loss_flat"}),
        ("loss doesn't decrease", {"loss_flat"}),
        ("loss 不下降", {"loss_flat"}),
        ("loss 爆炸了", {"loss_diverging"}),
        ("loss spikes at step 300", {"loss_spike"}),
        ("loss 为负", {"loss_negative"}),
        ("梯度爆炸", {"grad_norm_spike"}),
        ("logits 爆炸", {"logits_huge"}),
        ("logits are around -2.0e8", {"logits_huge"}),
        ("kl is negative", {"kl_negative"}),
        ("KL 很大", {"kl_huge"}),
        ("kl 一直为 0", {"kl_zero"}),
        ("got OOM", {"oom"}),
        ("爆显存了", {"oom"}),
        ("the job got killed", {"cpu_oom_killed"}),
        ("程序卡住不动了", {"hang"}),
        ("启动后在这里卡住了，无法继续", {"hang"}),
        ("我运行下面的命令，但卡在了一个地方。", {"hang"}),
        ("恢复训练的表象是卡在进度0%", {"hang"}),
        ("The code stucks at ray.get", {"hang"}),
        ("accuracy 卡在 50% 左右", {"accuracy_stuck"}),
        ("the process was killed", {"cpu_oom_killed"}),
        ("(1) The process is killed by SIGKILL by OOM killer due to high memory usage.", set()),
        ("(1) the process was killed by the OOM killer due to high memory usage", set()),
        ("A worker died or was killed while executing a task by an unexpected system error.", set()),
        ("kl loss keeps increasing", {"kl_huge"}),
        ("KL 越来越大", {"kl_huge"}),
        ("grad_norm与kl为0", {"grad_norm_zero", "kl_zero"}),
        ("kl_loss (the divergence from the reference)", set()),
        ("NCCL timeout after 30 min", {"nccl_timeout"}),
        ("模型停不下来,一直重复", {"never_stops", "repeats"}),
        ("the loss jumps after the resume", {"loss_spike"}),
        ("续训之后 loss 跳高", {"loss_spike"}),
        ("the model fails to generate eos_token", {"never_stops"}),
        ("模型不会生成 eos", {"never_stops"}),
        ("KeyError in optimizer.state_dict() under FSDP2", {"key_error"}),
        ("looks like reward hacking", {"reward_hacking"}),
        ("reward 不涨", {"reward_flat"}),
        ("reward drops to 0 suddenly", {"reward_collapse"}),
        ("entropy collapse", {"entropy_collapse"}),
        ("回复越来越短", {"length_collapse"}),
        ("responses get longer and longer", {"length_explosion"}),
        ("accuracy stuck around 0.5", {"accuracy_stuck"}),
        ("label 全是 -100", {"labels_all_ignored"}),
        (
            "it says ValueError: Some specified arguments are not used by the HfArgumentParser: ['--x']",
            {"unrecognized_argument"},
        ),
    ],
)
def test_what_a_user_says_is_stated(text: str, kinds: set[str]) -> None:
    assert stated(text) == kinds
    assert all(signal.stated for signal in read(text).signals)


@every_case(
    "text",
    [
        "no nan", "loss is not nan", "没有 nan", "不是 OOM", "loss 没有变成 nan", "the loss never becomes nan",
        "how to avoid OOM?",
        "如何避免 OOM", "logging_nan_inf_filter is on", "without any nan", "loss 不会 nan", "没有 CUDA out of memory",
        "it isn't a hang",
        "loss 没有爆炸", "kl is not negative", "程序不会卡死", "there are no loss spikes", "loss no longer nan",
        "nanny and information",
        "my dataset has nan in a column",
        "see nan.log and np.nan",
    ],
)  # fmt: skip
def test_what_a_user_denies_is_not_stated(text: str) -> None:
    assert stated(text) == set()


@every_case(
    ("text", "kinds"),
    [
        ("no OOM, but loss is nan", {"loss_nan"}), ("没有 OOM,但是 loss nan", {"loss_nan"}),
        ("not only loss nan", {"loss_nan"}), ("不知道为什么 loss nan", {"loss_nan"}),
        ("I have no idea why loss is nan", {"loss_nan"}), ("no nan, just loss stuck at 0.69", {"loss_flat"}),
    ],
)  # fmt: skip
def test_a_denial_ends_with_its_clause(text: str, kinds: set[str]) -> None:
    assert stated(text) == kinds


def test_a_stated_signal_has_its_place() -> None:
    (signal,) = read("hello,\n训练 loss 变成 nan 了").signals
    assert (signal.span.line, signal.span.column, signal.span.text) == (2, 4, "loss 变成 nan")


def test_only_the_beginning_of_an_endless_text_is_read() -> None:
    assert stated("x " * prose.MAX_CHARACTERS + " loss is nan") == set()
    assert stated("loss is nan " + "x " * prose.MAX_CHARACTERS) == {"loss_nan"}


WORDS = ["loss", " nan", "没有", " 4.45", "transformers", " and ", "trl", "==", ",", ".", "\n", "是", "grad norm", "kl"]
WORDS += ["不", "no ", "Qwen", "-7B", "0", "升级到", " of "]


@given(st.lists(st.sampled_from(WORDS), max_size=25).map("".join))
def test_reading_never_raises_and_spans_are_the_text(text: str) -> None:
    lines = text.split("\n")
    found = read(text)
    spans = [fact.span for fact in found.versions if fact.span is not None] + [signal.span for signal in found.signals]
    for span in spans:
        if span.line == span.end_line:
            assert lines[span.line - 1][span.column - 1 : span.end_column - 1] == span.text


@every_case("message", prose.STATED)
def test_what_a_pattern_matches_holds_one_of_its_literals(message: Message) -> None:
    @settings(max_examples=12, deadline=None, derandomize=True, database=None)
    @given(st.from_regex(message.pattern))
    def holds(text: str) -> None:
        match = message.pattern.search(text)
        assert match is not None
        assert message.may_match(match[0])

    holds()
