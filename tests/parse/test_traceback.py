"""Tracebacks as single processes, ranks, Ray and torchrun print them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.every_case import every_case
from trainmedic.kb.model.evidence import Traceback
from trainmedic.kb.parse.logs import tracebacks
from trainmedic.kb.parse.source import Piece


def read(text: str) -> tuple[Traceback, ...]:
    return tracebacks.read(Piece(source="train.log", text=text))


SIMPLE = """start
Traceback (most recent call last):
  File "/code/train.py", line 7, in main
    run()
    ^^^^^
  File "/code/run.py", line 9, in run
    raise ValueError("boom")
ValueError: boom: twice
after
"""


def test_a_traceback_has_its_exception_message_frames_and_place() -> None:
    (found,) = read(SIMPLE)
    assert (found.exception, found.message, found.root, found.rank) == ("ValueError", "boom: twice", True, None)
    assert found.frames == ("/code/train.py:7 main", "/code/run.py:9 run")
    assert (found.span.line, found.span.end_line) == (2, 8)


HEAD = 'Traceback (most recent call last):\n  File "a.py", line 3, in g\n'
FRAME = ("a.py:3 g",)
TORN = "line 3479, in cross_entropy\n    return torch._C._nn.cross_entropy_loss(\n\n"
TORN += "torch.OutOfMemoryError: CUDA out of memory."
RAY = """Traceback (most recent call last):
  File "main_ppo.py", line 63, in main
    run_ppo(config)
ray.exceptions.RayTaskError(OSError): ray::TaskRunner.run() (pid=4237, ip=10.1.1.1, repr=<X object>)
  File "ray_trainer.py", line 212, in run
    trainer.fit()
OSError: no such thing
"""
BLUE = "[36m(TaskRunner pid=9)[0m "


@pytest.mark.parametrize(
    ("text", "exception", "message", "frames"),
    [
        pytest.param(*case, id=said)
        for said, *case in (
            ("cut off inside a frame", TORN, "torch.OutOfMemoryError", "CUDA out of memory.",
             ("line 3479 cross_entropy",)),
            ("also behind its path", f'site-packages/torch/nn/functional.py", {TORN}', "torch.OutOfMemoryError",
             "CUDA out of memory.", ("line 3479 cross_entropy",)),
            ("cut off at the top", '    return f(x)\n  File "a.py", line 3, in g\n    assert x\nAssertionError: no\n',
             "AssertionError", "no", FRAME),
            ("cut off at the end", f"{HEAD}    x = long(", "", "", FRAME),
            ("Ray wraps the real exception", RAY, "OSError", "no such thing",
             ("main_ppo.py:63 main", "ray_trainer.py:212 run")),
            ("also where it is cut off", "ray.exceptions.RayTaskError(ValueError): ray::f() (pid=1)", "ValueError",
             "ray::f() (pid=1)", ()),
            ("with its message", f"{HEAD}ray.exceptions.RayTaskError(KeyError): gone", "KeyError", "gone", FRAME),
            ("indented lines", "RuntimeError: Error(s) in state_dict:\n\tsize mismatch\nnext line", "RuntimeError",
             "Error(s) in state_dict:\nsize mismatch", ()),
            ("the message on the next line", f"{HEAD}my.pkg.SomeError:\nwhat happened\n", "my.pkg.SomeError",
             "what happened", FRAME),
            ("behind an empty line", f"{HEAD}my.pkg.SomeError:\n\nwhat happened\n", "my.pkg.SomeError", "what happened",
             FRAME),
            ("not behind a rule", f"{HEAD}my.pkg.SomeError:\n=====\nmore\n", "my.pkg.SomeError", "", FRAME),
            ("repeated prefixes", "[rank1]: [rank1]: [rank1]: [rank1]: ValueError: boom", "ValueError", "boom", ()),
            ("other output inside", f"{HEAD}Epoch: 3\n\nstill here\nTypeError: x\n", "TypeError", "x", FRAME),
            ("colours without their escape", BLUE + f"{HEAD}ValueError: boom".replace("\n", f"\n{BLUE}"), "ValueError",
             "boom", FRAME),
        )
    ],
)  # fmt: skip
def test_one_traceback_however_it_is_printed(text: str, exception: str, message: str, frames: tuple[str, ...]) -> None:
    (found,) = read(text)
    assert (found.exception, found.message, found.frames, found.root) == (exception, message, frames, True)


def test_words_that_speak_of_a_line_are_no_frame() -> None:
    assert read("it fails on line 3, in the middle of an epoch") == ()


def test_of_a_chain_the_first_exception_is_the_root_and_stands_first() -> None:
    text = (
        "Traceback (most recent call last):\n  File \"a.py\", line 1, in a\nKeyError: 'x'\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        'Traceback (most recent call last):\n  File "b.py", line 2, in b\nRuntimeError: second\n\n'
        "The above exception was the direct cause of the following exception:\n\n"
        'Traceback (most recent call last):\n  File "c.py", line 3, in c\nTypeError: third\n'
    )
    assert [(one.exception, one.root) for one in read(text)] == [
        ("KeyError", True),
        ("RuntimeError", False),
        ("TypeError", False),
    ]


def test_interleaved_ranks_come_apart() -> None:
    text = """[rank3]: Traceback (most recent call last):
[rank0]: Traceback (most recent call last):
[rank3]:   File "a.py", line 3, in f
[rank0]:   File "b.py", line 9, in g
[rank3]: ValueError: boom
[rank0]: torch.distributed.DistBackendError: NCCL communicator was aborted
"""
    first, second = read(text)
    assert (first.exception, first.rank, first.root, first.frames) == ("ValueError", 3, True, ("a.py:3 f",))
    assert (second.rank, second.root, second.frames) == (0, False, ("b.py:9 g",))


def test_the_same_failure_of_every_rank_is_one() -> None:
    text = "".join(
        f'[rank{rank}]: Traceback (most recent call last):\n[rank{rank}]:   File "a.py", line 3, in f\n[rank{rank}]: '
        f"ValueError: boom\n"
        for rank in range(8)
    )
    assert len(read(text)) == 1


@every_case(
    ("prefix", "rank"),
    [
        ("[1,5]<stderr>:", 5), ("[default2]: ", 2), ("3: ", 3), ("(main_task pid=12, ip=1.2.3.4) ", None),
        ("\x1b[36m(WorkerDict pid=12)\x1b[0m ", None), ("2024-05-01 10:20:30,123 - ERROR - ", None),
        ("2024-05-01T10:20:30.5Z ", None), ("> ", None), ("    ", None),
    ],
)  # fmt: skip
def test_process_prefixes_are_removed(prefix: str, rank: int | None) -> None:
    lines = ["Traceback (most recent call last):", '  File "a.py", line 3, in f', "    x()", "AssertionError"]
    found = read("\n".join(prefix + line for line in lines))
    assert [(one.exception, one.message, one.rank, one.frames) for one in found] == [
        ("AssertionError", "", rank, ("a.py:3 f",))
    ]


def test_torchrun_names_the_root_rank() -> None:
    text = """[rank0]: Traceback (most recent call last):
[rank0]:   File "b.py", line 9, in g
[rank0]: RuntimeError: other
[rank3]: Traceback (most recent call last):
[rank3]:   File "a.py", line 3, in f
[rank3]: ValueError: boom
Traceback (most recent call last):
  File "run.py", line 1, in <module>
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
Root Cause (first observed failure):
[0]:
  time      : 2024-10-22_06:18:55
  host      : node0
  rank      : 3 (local_rank: 3)
  exitcode  : 1 (pid: 4220)
"""
    assert [(one.exception.rsplit(".")[-1], one.root) for one in read(text)] == [
        ("ValueError", True), ("RuntimeError", False), ("ChildFailedError", False),
    ]  # fmt: skip


def test_a_table_that_names_a_rank_without_a_traceback_changes_nothing() -> None:
    text = "ValueError: boom\nRoot Cause (first observed failure):\n[0]:\n  rank      : 3 (local_rank: 3)\n"
    assert read(text)[0].root


def test_what_only_follows_from_another_failure_is_no_root_unless_alone() -> None:
    text = "ConnectionResetError: [Errno 104] Connection reset by peer\nValueError: boom\n"
    assert [(one.exception, one.root) for one in read(text)] == [("ValueError", True), ("ConnectionResetError", False)]
    assert read("BrokenPipeError: [Errno 32] Broken pipe")[0].root
    assert read("RuntimeError: Connection closed by peer\nKeyError: 'x'")[0].exception == "KeyError"


@every_case(
    ("line", "exception"),
    [
        ("ValueError: Some specified arguments are not used", "ValueError"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "torch.OutOfMemoryError"),
        ("I get RuntimeError: shape mismatch", "RuntimeError"),
        ("AssertionError", "AssertionError"),
        ("W0325 10:00:00 api.py:869] ValueError: boom", "ValueError"),
    ],
)
def test_a_lone_last_line_counts(line: str, exception: str) -> None:
    (found,) = read(line)
    assert found.exception == exception
    assert found.span.line == 1


def test_endless_recursion_keeps_a_bounded_number_of_frames() -> None:
    text = (
        "Traceback (most recent call last):\n" + '  File "a.py", line 3, in g\n' * 1000 + "RecursionError: too deep\n"
    )
    (found,) = read(text)
    assert len(found.frames) == 200
    assert found.exception == "RecursionError"


def test_a_frame_after_a_finished_traceback_starts_another() -> None:
    text = "ValueError: a\n  File \"b.py\", line 1\nKeyError: 'k'\n"
    assert [(one.exception, one.frames) for one in read(text)] == [("ValueError", ()), ("KeyError", ("b.py:1",))]


@every_case("text", ["", "all is well", "the Error rate is low", "Exception handling is on", "Error: x"])
def test_talk_of_errors_is_no_traceback(text: str) -> None:
    assert read(text) == ()


def test_the_number_of_tracebacks_is_bounded() -> None:
    assert len(read("".join(f"ValueError: {i}\n" for i in range(5000)))) == tracebacks.MAX_TRACEBACKS


PARTS = st.sampled_from(
    ["Traceback (most recent call last):", '  File "a.py", line 3, in g', "    x()", "ValueError: b", "KeyError",
    "\n", "[rank1]: ",
     "During handling of the above exception, another", "RayTaskError(X): ray::f()", "  ", "> ", "Error:",
     "Root Cause (first observed failure)", "x"]
)  # fmt: skip


@given(st.lists(PARTS, max_size=30).map("".join))
def test_reading_never_raises_and_at_most_one_is_the_root(text: str) -> None:
    found = read(text)
    assert sum(one.root for one in found) == (1 if found else 0)
    assert not found or found[0].root
    for one in found:
        assert one.span.text in text


@every_case(
    ("text", "message", "last"),
    [
        ("ValueError: not used by the model:\n['foo', 'bar']\n\nthanks", "not used by the model:\n['foo', 'bar']", 4),
        ("RuntimeError: loading:\n\tsize mismatch\n\tand more", "loading:\nsize mismatch\nand more", 5),
        ("RuntimeError: loading:\n\nHow do I fix it?", "loading:", 3),
        ("RuntimeError: loading:\n{'loss': 0.5}", "loading:", 3),
        ("RuntimeError: loading:\n[2025-01-02 03:04:05] INFO next", "loading:", 3),
        ("RuntimeError: loading:\n 10%|█ | 5/50 [00:10<01:30]", "loading:", 3),
        ("KeyError:\nrewards", "rewards", 4),
    ],
)
def test_a_message_that_ends_with_a_colon_keeps_its_first_line_and_gets_the_next(
    text: str, message: str, last: int
) -> None:
    (found,) = read(f'Traceback (most recent call last):\n  File "a.py", line 3, in f\n{text}')
    assert (found.message, found.span.end_line) == (message, last)


def test_a_lone_last_line_that_ends_with_a_colon_gets_the_next_line() -> None:
    (found,) = read("ValueError: Target modules not found:\nq_proj, k_proj\nDone")
    assert (found.message, found.span.end_line) == ("Target modules not found:\nq_proj, k_proj", 2)
    (told,) = read("then I see ValueError: not found:\nwhat does it mean")
    assert told.message == "not found:"


def test_it_points_at_the_exception_and_at_the_innermost_call_of_the_users_own_code() -> None:
    frames = SIMPLE.replace("/code/run.py", "/opt/lib/python3.11/site-packages/trl/run.py")
    (one,) = read(frames)
    assert [(span.line, span.text) for span in one.places] == [
        (8, "ValueError: boom: twice"), (3, 'File "/code/train.py", line 7, in main')
    ]  # fmt: skip
    (two,) = read(SIMPLE)
    assert [span.line for span in two.places] == [8, 6]
    (alone,) = read("RuntimeError: it broke\n")
    assert alone.places == (alone.span,)
