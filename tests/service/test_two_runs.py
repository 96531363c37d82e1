"""The files of two runs in one question: which is which, and an answer about the failing one with the differences."""

from __future__ import annotations

from pathlib import Path

from tests.every_case import every_case
from tests.test_run_diff import BAD, GOOD, PACKAGES, log
from trainmedic.kb.model.place import Attachment
from trainmedic.service.advisor import Advisor
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.dialogue.two_runs import sides_of, two_runs
from trainmedic.service.storage.history import History
from trainmedic.service.storage.memory import Memory

FILES = (
    Attachment(name="good/train.yaml", content=GOOD),
    Attachment(name="good/train.log", content=log()),
    Attachment(name="bad/train.yaml", content=BAD),
    Attachment(name="bad/train.log", content=log(broken=16)),
    Attachment(name="pip.txt", content=PACKAGES),
)


@every_case(
    ("question", "names", "works", "fails"),
    [
        ("what differs?", ("good.yaml", "bad.yaml"), "good.yaml", "bad.yaml"),
        ("", ("works/a.log", "fails/a.log"), "works/a.log", "fails/a.log"),
        ("run a works, run b gives NaN", ("run_a.yaml", "run_b.yaml"), "run_a.yaml", "run_b.yaml"),
        ("b.yaml does not converge but a.yaml trains fine", ("a.yaml", "b.yaml"), "a.yaml", "b.yaml"),
        ("run_a works, run_b does not. why?", ("run_a.yaml", "run_b.yaml"), "run_a.yaml", "run_b.yaml"),
        ("old.yaml 正常，new.yaml 发散", ("new.yaml", "old.yaml"), "old.yaml", "new.yaml"),
        ("what is the difference? new.log crashes", ("new.log", "old.log"), "old.log", "new.log"),
    ],
)
def test_the_side_of_a_file_is_in_its_name_or_in_the_question(
    question: str, names: tuple[str, ...], works: str, fails: str
) -> None:
    assert sides_of(question, names) == {works: "works", fails: "fails"}


@every_case(
    ("question", "names"),
    [
        ("loss is nan", ("train.yaml", "train.log")),
        ("train.yaml gives nan", ("train.yaml", "ds.yaml")),
        ("", ("good.yaml", "bad.log")),
        ("", ("failed.log", "train.yaml", "pip.txt")),
    ],
)
def test_files_of_one_run_are_not_taken_for_two(question: str, names: tuple[str, ...]) -> None:
    assert two_runs(question, [Attachment(name=name, content="") for name in names]) is None


def test_the_answer_is_about_the_failing_run_and_says_what_differs(advisor: Advisor, tmp_path: Path) -> None:
    remembering = Advisor(advisor.knowledge, advisor.read, Memory(History(f"sqlite:///{tmp_path / 'h.sqlite3'}")))
    answer = remembering.ask(Ask(question="why does it fail?", attachments=FILES))
    view = answer.comparison
    assert view is not None
    assert (view.works, view.fails) == (
        ("good/train.yaml", "good/train.log", "pip.txt"),
        ("bad/train.yaml", "bad/train.log", "pip.txt"),
    )
    assert {"learning_rate", "bf16"} <= {item.name for item in view.differences}
    assert {series.attachment for series in answer.series} == {"bad/train.log"}
    assert {series.attachment for series in view.series} == {"good/train.log"}
    (shown, *_) = (section for section in answer.sections if section.kind == "differences")
    assert "`learning_rate`: `1e-05` → `0.001`" in answer.answer
    assert not shown.folded
    followed = remembering.ask(Ask(question="什么是 grad_norm?", conversation_id=answer.conversation_id))
    assert followed.run.settings["learning_rate"].value == answer.run.settings["learning_rate"].value
    stored = remembering.memory.answer(answer.id)
    assert stored is not None
    assert {file.name for turn in stored.turns[:1] for file in turn.attachments} == {file.name for file in FILES}


def test_the_same_question_without_the_other_run_has_no_comparison(advisor: Advisor) -> None:
    alone = advisor.ask(Ask(question="why does it fail?", attachments=FILES[2:]))
    assert alone.comparison is None
    assert all(section.kind != "differences" for section in alone.sections)


def test_the_setting_that_the_cause_is_about_leads_and_is_set_as_in_the_run_that_works(advisor: Advisor) -> None:
    config = (
        "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\ndo_train: true\nfinetuning_type: full\ndataset: identity\n"
    )
    config += "template: qwen\noutput_dir: {name}\nlearning_rate: {rate}\nwarmup_ratio: {warmup}\nbf16: true\n"
    falls = [{"loss": 2 - n / 60, "grad_norm": 1.0, "learning_rate": 1e-5, "epoch": n / 100} for n in range(80)]
    climbs = [
        {**each, "loss": each["loss"] if n < 30 else 1.5 + (n - 30) / 15, "learning_rate": 1e-3}
        for n, each in enumerate(falls)
    ]
    given = (
        Attachment(name="good.yaml", content=config.format(name="a", rate="1.0e-5", warmup=0.1)),
        Attachment(name="good.log", content="".join(f"{each}\n" for each in falls)),
        Attachment(name="bad.yaml", content=config.format(name="b", rate="1.0e-3", warmup=0.0)),
        Attachment(name="bad.log", content="".join(f"{each}\n" for each in climbs)),
    )
    answer = advisor.ask(Ask(question="what is different?", attachments=given))
    differences = next(section for section in answer.sections if section.kind == "differences")
    assert differences.items[0].startswith("`learning_rate`: `1e-05` → `0.001`")
    assert "-learning_rate: 1.0e-3\n+learning_rate: 1.0e-5\n" in answer.answer
