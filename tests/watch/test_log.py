"""The text of a run, kept within bounds."""

from __future__ import annotations

from trainmedic.ui.watch.log import HEAD_LINES, MAX_LINE, TAIL_LINES, Log


def test_pieces_may_end_anywhere() -> None:
    log = Log()
    assert log.add("step 1: lo") == ""
    assert log.add("ss 2.0\nstep 2") == "step 1: loss 2.0"
    assert log.recent() == "step 1: loss 2.0"
    assert log.end() == "step 2"
    assert log.recent() == "step 1: loss 2.0\nstep 2"
    assert log.end() == ""


def test_the_beginning_and_the_end_of_a_long_log_are_kept() -> None:
    log = Log()
    log.add("".join(f"line {n}\n" for n in range(1, 10_001)))
    kept = log.recent().split("\n")
    assert len(kept) == HEAD_LINES + TAIL_LINES
    assert kept[0] == "line 1"
    assert kept[HEAD_LINES - 1] == f"line {HEAD_LINES}"
    assert kept[-1] == "line 10000"
    assert log.whole().split("\n")[9_999] == "line 10000", "every line keeps its number"
    assert log.lines == 10_000


def test_of_a_progress_bar_the_last_state_is_kept() -> None:
    log = Log()
    for n in range(100):
        log.add(f"\r{n}%|###")
    assert log.add("\r100%|####\nloss 1.0\r\n") == "100%|####\nloss 1.0"


def test_a_line_that_never_ends_is_bounded() -> None:
    log = Log()
    for _ in range(100):
        log.add("x" * MAX_LINE)
    assert len(log.end()) <= MAX_LINE
