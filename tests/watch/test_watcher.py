"""When a failure is told, and that it is told once."""

from __future__ import annotations

from collections.abc import Sequence

from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report_view import ReceiptView, RunView
from trainmedic.service.answer.schema import Answer, CauseView, Verdict
from trainmedic.ui.watch.alarm import alarm
from trainmedic.ui.watch.notify import headline
from trainmedic.ui.watch.watcher import EVERY_S, LONGEST_WAIT_S, QUIET_S, Diagnosis, Watcher, logging_steps

HEALTHY = "".join(f"{{'loss': {2.0 - n / 50}, 'grad_norm': 1.{n % 7}, 'step': {n}}}\n" for n in range(1, 40))
BROKEN = "{'loss': nan, 'grad_norm': nan, 'step': 40}\n"
SPIKE = "{'loss': 90.0, 'grad_norm': 400.0, 'step': 41}\n{'loss': 1.2, 'grad_norm': 1.0, 'step': 42}\n"
TRACE = 'Traceback (most recent call last):\n  File "t.py", line 1, in <module>\nValueError: bad batch\n'


def answer(verdict: Verdict, case_id: str) -> Answer:
    cause = CauseView(
        rank=1,
        case_id=case_id,
        title="",
        cause="",
        fix="",
        confidence="high",
        score=0.9,
        evidence_grade="",
        cases=(),
        findings=(),
        refutations=(),
    )
    return Answer(
        id="a",
        conversation_id="c",
        verdict=verdict,
        language="en",
        mode="deterministic",
        model=None,
        answer="because",
        causes=(cause,) if case_id else (),
        findings=(),
        citations=(),
        missing=(),
        signals=(),
        run=RunView(
            framework=None,
            algorithm=None,
            stage=None,
            model=None,
            model_family=None,
            reasons={},
            versions={},
            settings={},
        ),
        receipt=ReceiptView(inputs=(), masked=(), problems=()),
        kb_version="",
        ruleset_version="",
    )


class Run:
    """A watched run with a clock of its own and a scripted answer."""

    def __init__(self, verdict: Verdict = "answered", case: str = "a-case") -> None:
        self.now = 0.0
        self.told: list[Diagnosis] = []
        self.asked: list[tuple[Attachment, ...]] = []
        self.verdict = verdict
        self.case = case
        self.watcher = Watcher("train.log", (), self.diagnose, self.told.append, clock=lambda: self.now)

    def diagnose(self, attachments: Sequence[Attachment]) -> Answer:
        self.asked.append(tuple(attachments))
        return answer(self.verdict, self.case)

    def writes(self, text: str, after_s: float = 0.1) -> None:
        self.watcher.add(text)
        self.waits(after_s)

    def waits(self, seconds: float) -> None:
        self.now += seconds
        self.watcher.look()


def test_a_healthy_run_is_left_in_peace() -> None:
    run = Run()
    for line in HEALTHY.splitlines(keepends=True):
        run.writes(line, EVERY_S + 1)
    run.watcher.end()
    assert run.told == []
    assert run.asked == []


def test_a_nan_is_told_with_its_step_once_the_log_falls_silent() -> None:
    run = Run()
    run.writes(HEALTHY)
    run.writes(BROKEN)
    assert run.told == []
    run.waits(QUIET_S + 0.1)
    (told,) = run.told
    assert told.alarm.step == 40
    assert told.alarm.certain
    assert headline(told).startswith("trainmedic: train.log, step 40: ")


def test_a_run_that_goes_on_with_nan_is_told_all_the_same_and_once() -> None:
    run = Run()
    run.writes(HEALTHY)
    for n in range(41, 141):
        run.writes(BROKEN.replace("40", str(n)), LONGEST_WAIT_S / 20)
    run.watcher.end()
    assert [told.alarm.step for told in run.told] == [41]


def test_a_traceback_is_waited_for_and_told_whole() -> None:
    run = Run()
    for line in TRACE.splitlines(keepends=True):
        run.writes(line, QUIET_S / 4)
    run.waits(QUIET_S + 0.1)
    (told,) = run.told
    assert "ValueError" in told.alarm.kinds
    assert str(run.asked[-1][-1].content).count("\n") >= 2


def test_what_follows_from_a_failure_is_not_told_again() -> None:
    run = Run()
    run.writes(BROKEN)
    run.waits(QUIET_S + 0.1)
    run.writes(TRACE)
    run.waits(QUIET_S + 0.1)
    assert len(run.told) == 1
    run.case = "another-case"
    run.writes(TRACE.replace("Value", "Type"))
    run.waits(QUIET_S + 0.1)
    assert len(run.told) == 2


def test_a_failure_after_a_recovery_is_told_without_the_first_one_and_its_consequences_are_not() -> None:
    run = Run("not_in_kb", "")
    run.writes(HEALTHY + BROKEN)
    run.waits(QUIET_S + 0.1)
    run.writes("restarting\n" + HEALTHY)
    run.waits(EVERY_S + 0.1)
    run.writes("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n")
    run.waits(QUIET_S + 0.1)
    run.writes(TRACE)
    run.waits(QUIET_S + 0.1)
    assert ["oom" in diagnosis.alarm.kinds for diagnosis in run.told] == [False, True]
    log = str(run.asked[1][-1].content).split("\n")
    assert "nan" not in "\n".join(log)
    assert log.index("restarting") == 40, "line numbers are those of the log"


def test_a_doubtful_sign_is_told_only_where_a_case_explains_it() -> None:
    expected: tuple[tuple[Verdict, str, int], ...] = (("need_input", "", 0), ("answered", "a-case", 1))
    for verdict, case, times in expected:
        run = Run(verdict, case)
        run.writes(HEALTHY + SPIKE)
        run.waits(EVERY_S + 1)
        run.waits(QUIET_S + 0.1)
        assert len(run.told) == times


def test_a_failure_in_the_last_line_is_told_at_the_end() -> None:
    run = Run()
    run.writes(HEALTHY)
    run.watcher.add(BROKEN.rstrip("\n"))
    run.watcher.end()
    assert [told.alarm.step for told in run.told] == [40]


def test_a_log_without_steps_is_counted_by_its_rows() -> None:
    rows = "".join(f"{{'loss': '1.{n}', 'grad_norm': '1.0', 'epoch': '0.{n}'}}\n" for n in range(1, 5))
    broken = "{'loss': '0', 'grad_norm': 'nan', 'epoch': '0.5'}\n"
    found = alarm(rows + broken, "x.log")
    assert found is not None
    assert (found.step, found.row) == (None, 5)
    counted = alarm(rows + broken, "x.log", every=10)
    assert counted is not None
    assert counted.step == 50


def test_how_often_a_row_is_logged_is_read_from_the_configuration() -> None:
    script = "from transformers import TrainingArguments\nargs = TrainingArguments(output_dir='o', logging_steps=5)\n"
    assert logging_steps((Attachment(name="t.py", content=script),)) == 5
    assert logging_steps(()) is None
