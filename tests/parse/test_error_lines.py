"""Errors as people quote them: without a traceback, cut off, inside a sentence."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.every_case import every_case
from tests.parse.reading import true_span
from trainmedic.kb.parse.pipeline import parse


def errors(text: str) -> list[tuple[str, str]]:
    traces = parse(text).tracebacks
    assert all(true_span(trace.span, text) for trace in traces)
    return [(trace.exception, trace.message) for trace in traces]


@every_case(
    ("text", "exception", "message"),
    [
        ("It dies with `ValueError: Attempting to unscale FP16 gradients.` now", "ValueError",
         "Attempting to unscale FP16 gradients."),
        ("训练报错RuntimeError: shape '[1, 5]' is invalid，单卡没问题", "RuntimeError", "shape '[1, 5]' is invalid"),
        ("报错：AttributeError：'NoneType' object has no attribute 'x'", "AttributeError",
         "'NoneType' object has no attribute 'x'"),
        ("**RuntimeError: Expected to mark a variable ready only once.**", "RuntimeError",
         "Expected to mark a variable ready only once."),
        ("since then ('KeyError: 'a' of b' again)", "KeyError", "'a' of b"),
        ("breaks (TypeError: f(x) failed) at the start", "TypeError", "f(x) failed"),
        ("Exception: Could not find the layer class", "Exception", "Could not find the layer class"),
        ("\tsize mismatch for lm_head.weight: copying a param with shape torch.Size([0])", "RuntimeError",
         "size mismatch for lm_head.weight: copying a param with shape torch.Size([0])"),
        ("- 8 GPUs: CUDA out of memory. Tried to allocate 2.00 GiB", "OutOfMemoryError",
         "CUDA out of memory. Tried to allocate 2.00 GiB"),
        ("it says `f() got an unexpected keyword argument 'tokenizer'`, why", "TypeError",
         "f() got an unexpected keyword argument 'tokenizer'"),
        ("...eError: Expected a tensor on cuda:0", "", "Expected a tensor on cuda:0"),
        ("(WorkerDict pid=12) RuntimeError: boom", "RuntimeError", "boom"),
        ("\x1b[36m(TaskRunner pid=99)\x1b[0m ValueError: 10 must be divisible by 8", "ValueError",
         "10 must be divisible by 8"),
        ("E       RuntimeError: boom", "RuntimeError", "boom"),
        ("since then `ValueError: never closed again", "ValueError", "never closed again"),
    ],
)  # fmt: skip
def test_a_quoted_error_has_its_type_and_message(text: str, exception: str, message: str) -> None:
    shown = text.replace("\x1b[36m", "").replace("\x1b[0m", "")
    assert errors(shown) == [(exception, message)]
    assert [trace.message for trace in parse(text).tracebacks] == [message]


@every_case(
    "text",
    [
        "No RuntimeError: it just hangs.",
        "```python\ntry:\n    f()\nexcept ValueError: \n    pass\n```",
        "how do I avoid CUDA out of memory. Tried to allocate",
        "UserWarning: The given array is not writable",
    ],
)
def test_an_error_that_did_not_occur_is_none(text: str) -> None:
    assert errors(text) == []


def test_a_message_inside_a_traceback_is_not_read_twice() -> None:
    text = (
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\nRuntimeError: CUDA error: device-side assert'
    )
    assert errors(text) == [("RuntimeError", "CUDA error: device-side assert")]


def test_the_same_quoted_message_is_one_error() -> None:
    assert len(errors("`list index out of range`\nand `list index out of range`")) == 1


def test_an_exception_by_its_name_alone_is_stated() -> None:
    signals = parse("It stops with an AssertionError in the reward manager").signals
    assert [(signal.kind, signal.stated) for signal in signals] == [("assertion", True)]


def test_nccls_own_log_lines_are_a_log() -> None:
    signals = parse("[E ProcessGroupNCCL.cpp:475] [Rank 3] Watchdog caught collective operation timeout: ran").signals
    assert {signal.kind for signal in signals if not signal.stated} == {"nccl_timeout"}


@given(st.text(alphabet="`'\"(… .\n没no Error:cannot import name size mismatch for", max_size=80))
def test_reading_never_raises(text: str) -> None:
    parse(f"...eError: {text}")
    errors(text)
