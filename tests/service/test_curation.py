"""The curator's lists: failures that are the same, questions that are alike, and what was right once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from trainmedic.kb.parse.logs.error_lines import template
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.advisor import Advisor
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.dialogue.turn import turn_of
from trainmedic.service.storage.curation import clustered, unresolved_views
from trainmedic.service.storage.history import Feedback, History
from trainmedic.service.storage.memory import Memory, fingerprint
from trainmedic.service.storage.outcomes import OpenQuestion
from trainmedic.ui.cli import main
from trainmedic.ui.evaluation.own import own_items

NOW = datetime(2026, 3, 1, tzinfo=UTC)
TRACE = """Traceback (most recent call last):
  File "/home/ann/train.py", line {line}, in <module>
    trainer.train()
RuntimeError: CUDA error at 0x7f{line}: rank {line} of '{name}' failed
"""


def question(number: int, text: str, mark: str = "", days: int = 0) -> OpenQuestion:
    return OpenQuestion(
        conversation_id=f"c{number}",
        answer_id=f"a{number}",
        question=text,
        asked_at=NOW + timedelta(days=days),
        reason="not_in_kb",
        fingerprint=mark,
    )


def embed(texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """Two directions: what speaks of a hang, and the rest."""
    return np.asarray([[1.0, 0.0] if "hang" in text else [0.0, 1.0] for text in texts], np.float32)


def test_the_same_exception_on_another_rank_line_and_machine_is_the_same_failure() -> None:
    first, second = (parse(TRACE.format(line=line, name=name)) for line, name in ((7, "a"), (9, "node-b")))
    assert fingerprint(first, ()) == fingerprint(second, ())
    assert fingerprint(first, ()) != fingerprint(parse("ValueError: no"), ())


def test_without_an_exception_the_named_cause_identifies_a_failure_and_nothing_else_does() -> None:
    evidence = parse("the loss is nan")
    assert fingerprint(evidence, ("case-a",)) == fingerprint(parse("loss became nan"), ("case-a",))
    assert fingerprint(evidence, ("case-a",)) != fingerprint(evidence, ("case-b",))
    assert fingerprint(evidence, ()) == ""


def test_what_differs_between_runs_is_left_out_of_a_message() -> None:
    assert template("Rank 3: no file '/data/x.bin' (0x7f3a), 12 left\nmore") == "rank * no file * (*), * left"


def test_questions_alike_are_one_line() -> None:
    questions = [
        question(1, "it hangs", days=2),
        question(2, "the loss is nan"),
        question(3, "hang at step 1", days=1),
        question(4, "something else entirely", mark="f", days=3),
        question(5, "hang with the same trace", mark="f", days=4),
    ]
    clusters = clustered(questions, embed)
    assert [[each.answer_id for each in group] for _, group in clusters] == [["a2", "a4"], ["a3", "a1", "a5"]]
    assert clusters[1][0].answer_id in {"a3", "a1", "a5"}
    assert clustered([], embed) == []
    views = unresolved_views(questions, embed, lambda text: "")
    assert [view.answers for view in views] == [("a3", "a1", "a5"), ("a2", "a4")]


def test_a_failure_with_the_same_fingerprint_joins_whatever_its_words_are() -> None:
    questions = [question(1, "it hangs", "f"), question(2, "no words in common", "f", days=1)]
    assert [len(group) for _, group in clustered(questions, embed)] == [2]


@pytest.fixture
def remembering(advisor: Advisor) -> Advisor:
    return Advisor(advisor.knowledge, advisor.read, Memory(History("sqlite://")))


NAN = "TRL SFT: the loss is nan from the first step with fp16 on T5"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 80 GiB"


def test_an_answer_says_how_often_its_failure_was_seen_in_other_conversations(remembering: Advisor) -> None:
    first = remembering.ask(Ask(question=OOM))
    again = remembering.ask(Ask(question=OOM, conversation_id=first.conversation_id))
    other = remembering.ask(Ask(question=OOM.replace("2.00", "7.50")))
    assert (first.sightings, again.sightings) == (None, None)
    assert other.sightings is not None
    assert other.sightings.count == 1
    assert other.answer == remembering.ask(Ask(question=OOM.replace("2.00", "7.50"))).answer


def test_the_lists_name_the_nearest_page_and_count_mechanisms_with_their_causes(remembering: Advisor) -> None:
    knowledge = remembering.knowledge
    remembering.ask(Ask(question="Our frobnicator hums in B flat while GRPO trains"))
    answer = remembering.ask(Ask(question=OOM))
    remembering.ask(Ask(question=OOM))
    remembering.memory.give_feedback(Feedback(answer_id=answer.id, reaction="down"))
    views = remembering.memory.unresolved(remembering.knowledge.embedder.vectors, remembering.nearest)
    assert {view.reason for view in views} >= {"voted_down"}
    assert all(view.nearest in knowledge.published for view in views if view.nearest)
    for view in remembering.memory.seen(remembering.knowledge, "zh"):
        assert view.title == knowledge.published[view.id].title.zh
        seen = remembering.memory.sightings(view.id, remembering.knowledge)
        assert seen is not None
        assert seen.count == view.count


def test_what_was_marked_as_right_is_asked_again(remembering: Advisor) -> None:
    history, knowledge = remembering.memory.history, remembering.knowledge
    assert history is not None
    answer = remembering.ask(Ask(question=NAN))
    remembering.memory.give_feedback(Feedback(answer_id=answer.id, reaction="resolved"))
    (item,) = own_items(history.confirmed(), (), knowledge)
    assert item.question == NAN
    assert item.cases == (answer.causes[0].case_id,)
    gone = replace(history.confirmed()[0].turn, causes=("no-longer-published",))
    assert own_items([replace(history.confirmed()[0], turn=gone)], (), knowledge) == ()


def test_the_command_line_lists_and_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRAINMEDIC_DATA_DIR", str(tmp_path))
    assert main(["admin", "history", "unresolved"]) == 0
    assert "nothing yet" in capsys.readouterr().err
    assert main(["eval", "--from-history"]) == 2
    assert "nothing to measure yet" in capsys.readouterr().err
    history = History(f"sqlite:///{tmp_path / 'history.sqlite3'}")
    turn = turn_of(NAN, answer_id="a1", verdict="not_in_kb", causes=())
    history.add("c1", turn, ["v"])
    history.add(
        "c2",
        replace(turn, answer_id="a2", verdict="answered", causes=("accelerate-launch-options-contradict",)),
        ["v"],
        fingerprint="f",
    )
    history.add(
        "c3",
        replace(turn, answer_id="a3", verdict="answered", causes=("accelerate-launch-options-contradict",)),
        ["v"],
        fingerprint="f",
    )
    for what, expected in (("unresolved", "not_in_kb"), ("seen", "accelerate-launch-options-contradict")):
        assert main(["admin", "history", what]) == 0
        assert expected in capsys.readouterr().out
        assert main(["admin", "history", what, "--json"]) == 0
        assert '"count"' in capsys.readouterr().out
