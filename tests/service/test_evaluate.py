"""The evaluation counts what it says it counts, shown with an answerer of known answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import cast

import pytest

from trainmedic.kb.errors import InvalidRequest
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report_view import FindingView, ReceiptView, RunView
from trainmedic.service.answer.schema import Answer, CauseView, Confidence, Verdict
from trainmedic.service.dialogue.request import Ask
from trainmedic.ui.evaluation.causes import (
    Evaluation,
    Item,
    Share,
    evaluate,
    item,
    misses,
    read_items,
    share,
    table,
)

RUN = RunView(
    framework=None,
    algorithm=None,
    stage=None,
    model=None,
    model_family=None,
    reasons=MappingProxyType({}),
    versions=MappingProxyType({}),
    settings=MappingProxyType({}),
)


def cause(case: str, rank: int, confidence: Confidence = "high") -> CauseView:
    return CauseView(
        rank=rank,
        case_id=case,
        title=case,
        cause="",
        fix="",
        confidence=confidence,
        score=0.9,
        evidence_grade="source-read",
        cases=(case,),
        findings=(),
        refutations=(),
    )


def finding(rule: str, status: str = "fired") -> FindingView:
    return FindingView(
        rule_id=rule,
        title=rule,
        severity="error",
        status=status,
        message="",
        fix="",
        patch=None,
        evidence=(),
        missing=(),
        cases=(),
    )


def answer(
    verdict: Verdict, *causes: str, confidence: Confidence = "high", findings: tuple[FindingView, ...] = ()
) -> Answer:
    return Answer(
        id="a",
        conversation_id="c",
        verdict=verdict,
        language="en",
        mode="deterministic",
        model=None,
        answer="",
        causes=tuple(cause(name, rank, confidence) for rank, name in enumerate(causes, start=1)),
        findings=findings,
        citations=(),
        missing=(),
        signals=(),
        run=RUN,
        receipt=ReceiptView(inputs=(), masked=(), problems=()),
        kb_version="k",
        ruleset_version="r",
    )


def question(id: str, verdict: str = "answered", *cases: str, **changes: object) -> Item:
    values: dict[str, object] = {"id": id, "question": id, "verdict": verdict, "cases": cases}
    return Item(**(values | changes))  # type: ignore[arg-type]


def answering(answers: Mapping[str, Answer]) -> Callable[[Ask], Answer]:
    """An answerer that looks the question up."""
    return lambda ask: answers[ask.question]


def asked(answers: Mapping[str, Answer], *items: Item) -> Evaluation:
    return evaluate(items, answering(answers))


def line(**changes: object) -> str:
    values: dict[str, object] = {"id": "one", "question": "why?", "expect": {"verdict": "answered", "cases": ["a"]}}
    return json.dumps(values | changes, ensure_ascii=False)


@pytest.fixture
def questions(tmp_path: Path) -> Callable[..., Path]:
    def write(*lines: str) -> Path:
        path = tmp_path / "questions.jsonl"
        path.write_text("\n".join(lines), encoding="utf-8")
        return path

    return write


# -- reading


def test_an_item_has_everything_its_line_says() -> None:
    read = item(
        {
            "id": "one",
            "question": "为什么",
            "attachments": [{"name": "train.sh", "content": "--bf16"}],
            "language": "zh",
            "framework": "trl",
            "split": "held_out",
            "source": "https://example.org/1",
            "expect": {"verdict": "no_fault", "cases": ["a", "b"], "rules": ["r"], "silent": ["s"]},
        }
    )
    assert read == Item(
        id="one",
        question="为什么",
        verdict="no_fault",
        attachments=(Attachment(name="train.sh", content="--bf16"),),
        cases=("a", "b"),
        rules=("r",),
        silent=("s",),
        language="zh",
        framework="trl",
        split="held_out",
        source="https://example.org/1",
    )


def test_what_a_line_leaves_out_is_english_without_files_and_for_tuning() -> None:
    read = item({"id": "one", "question": "why?", "expect": {"verdict": "need_input"}})
    assert (read.language, read.attachments, read.split, read.framework, read.cases) == ("en", (), "tune", "", ())


def test_items_keep_the_order_of_the_file_and_blank_lines_do_not_count(questions: Callable[..., Path]) -> None:
    read = read_items(questions(line(id="b"), "", "   ", line(id="a"), ""))
    assert [one.id for one in read] == ["b", "a"]


def test_an_empty_file_has_no_items(questions: Callable[..., Path]) -> None:
    assert read_items(questions("")) == ()


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ("{not json", "Expecting"),
        ("[]", ""),
        (json.dumps({"question": "why?", "expect": {"verdict": "answered"}}), "id"),
        (json.dumps({"id": "one", "question": "why?"}), "expect"),
        (json.dumps({"id": "one", "question": "why?", "expect": {}}), "verdict"),
        (line(expect={"verdict": "maybe"}), "verdict must be one of"),
        (line(expected={}), "unknown keys ['expected']"),
        (line(expect={"verdict": "answered", "case": ["a"]}), "unknown keys in expect ['case']"),
        (line(attachments=[{"name": "train.sh"}]), "content"),
    ],
)
def test_a_bad_line_is_named_with_its_number(questions: Callable[..., Path], bad: str, says: str) -> None:
    path = questions(line(), "", bad)
    with pytest.raises(InvalidRequest) as caught:
        read_items(path)
    assert f"{path}:3: " in str(caught.value)
    assert says in str(caught.value)


def test_an_id_used_twice_is_refused(questions: Callable[..., Path]) -> None:
    with pytest.raises(InvalidRequest, match="used twice: one, two"):
        read_items(questions(*(line(id=name) for name in ("two", "one", "two", "three", "one"))))


# -- asking


def test_the_question_and_its_files_are_asked_as_they_are() -> None:
    seen: list[Ask] = []

    def answerer(ask: Ask) -> Answer:
        seen.append(ask)
        return answer("need_input")

    files = (Attachment(name="train.sh", content="--bf16"),)
    evaluate([question("why?", attachments=files)], answerer)
    assert [(ask.question, ask.attachments, ask.language) for ask in seen] == [("why?", files, "auto")]


def test_outcomes_stand_in_the_order_of_the_items() -> None:
    answers = {name: answer("answered", "a") for name in ("q2", "q1")}
    result = asked(answers, question("q2", "answered", "a"), question("q1", "answered", "a"))
    assert [one.item.id for one in result.outcomes] == ["q2", "q1"]


# -- figures


def test_first_and_in_three_count_where_the_right_cause_stands() -> None:
    answers = {
        "at 1": answer("answered", "right", "x", "y"),
        "at 3": answer("answered", "x", "y", "right"),
        "at 4": answer("answered", "x", "y", "z", "right"),
        "none": answer("answered", "x"),
    }
    result = asked(answers, *(question(name, "answered", "right") for name in answers))
    assert [one.rank for one in result.outcomes] == [1, 3, 4, None]
    assert result.overall.first == Share(right=1, total=4)
    assert result.overall.in_three == Share(right=2, total=4)


def test_f1_counts_a_wrong_name_a_missed_one_and_a_name_where_there_is_none() -> None:
    unsure = answer("need_input", "x")
    answers = {
        "right": answer("answered", "a"),
        "wrong": answer("answered", "x"),
        "missed": answer("not_in_kb"),
        "named for nothing": answer("answered", "x"),
        "only listed": replace(unsure, causes=tuple(replace(each, score=0.2) for each in unsure.causes)),
        "rightly nothing": answer("not_in_kb"),
    }
    causes = {name: ("a",) if name in ("right", "wrong", "missed") else () for name in answers}
    result = asked(answers, *(question(name, "answered", *cases) for name, cases in causes.items()))
    assert result.overall.f1 == Share(right=2, total=3 + 3)


def test_any_of_the_expected_cases_is_right() -> None:
    result = asked({"q": answer("answered", "second", "first")}, question("q", "answered", "first", "second"))
    assert result.outcomes[0].rank == 1


def test_a_question_that_expects_no_case_is_not_counted_among_those_with_a_cause() -> None:
    result = asked({"q": answer("not_in_kb")}, question("q", "not_in_kb"))
    assert result.overall.first == Share(right=0, total=0)
    assert result.overall.verdict == Share(right=1, total=1)


def test_a_false_answer_is_an_answer_where_there_must_be_none() -> None:
    answers = {
        "vague": answer("answered", "x"),
        "outside": answer("not_in_kb"),
        "healthy": answer("need_input"),
        "fault": answer("answered", "wrong"),
    }
    result = asked(
        answers,
        question("vague", "need_input"),
        question("outside", "not_in_kb"),
        question("healthy", "no_fault"),
        question("fault", "answered", "right"),
    )
    assert [one.item.id for one in result.outcomes if one.false_answer] == ["vague"]
    assert result.overall.false_answers == Share(right=1, total=3)
    assert result.overall.false_claims == Share(right=1, total=3)


def test_a_false_answer_of_low_confidence_claims_nothing() -> None:
    unsure = answer("answered", "x", confidence="low")
    result = asked({"vague": unsure}, question("vague", "need_input"))
    assert result.overall.false_answers == Share(right=1, total=1)
    assert result.overall.false_claims == Share(right=0, total=1)


def test_verdicts_are_counted_by_what_was_expected_and_what_was_given() -> None:
    answers = {
        "q1": answer("answered", "a"),
        "q2": answer("need_input"),
        "q3": answer("need_input"),
        "q4": answer("no_fault"),
    }
    result = asked(
        answers,
        question("q1", "answered", "a"),
        question("q2", "answered", "a"),
        question("q3", "answered", "a"),
        question("q4", "not_in_kb"),
    )
    assert result.confusion == {
        ("answered", "answered"): 1,
        ("answered", "need_input"): 2,
        ("not_in_kb", "no_fault"): 1,
    }
    assert list(result.confusion) == sorted(result.confusion)


def test_rules_are_right_if_all_that_must_fire_did_and_none_that_must_be_silent() -> None:
    fired = answer("answered", "a", findings=(finding("r1"), finding("r2")))
    answers = {name: fired for name in ("both", "one more", "silent", "not silent", "no rules")}
    result = asked(
        answers,
        question("both", "answered", "a", rules=("r1", "r2")),
        question("one more", "answered", "a", rules=("r1", "r3")),
        question("silent", "answered", "a", silent=("r3",)),
        question("not silent", "answered", "a", rules=("r1",), silent=("r2",)),
        question("no rules", "answered", "a"),
    )
    assert [one.rules_right for one in result.outcomes] == [True, False, True, False, True]
    assert result.overall.rules == Share(right=2, total=4)


def test_a_rule_that_cannot_tell_has_not_fired() -> None:
    answers = {"q": answer("need_input", findings=(finding("r2", "cannot_tell"), finding("r1")))}
    result = asked(answers, question("q", "need_input", rules=("r2",)))
    assert result.outcomes[0].fired == ("r1",)
    assert not result.outcomes[0].rules_right


def test_a_confidence_promises_that_the_first_cause_is_right() -> None:
    answers = {
        "sure": answer("answered", "a", confidence="high"),
        "sure and wrong": answer("answered", "x", "a", confidence="high"),
        "sure of nothing": answer("no_fault", "x", confidence="high"),
        "fairly sure": answer("answered", "a", confidence="medium"),
        "unsure": answer("need_input", "a", confidence="low"),
    }
    result = asked(
        answers,
        question("sure", "answered", "a"),
        question("sure and wrong", "answered", "a"),
        question("sure of nothing", "no_fault"),
        question("fairly sure", "answered", "a"),
        question("unsure", "answered", "a"),
    )
    assert result.overall.high == Share(right=1, total=3)
    assert result.overall.medium == Share(right=1, total=1)


def test_groups_are_by_language_framework_and_paste() -> None:
    answers = {"q1": answer("answered", "a"), "q2": answer("need_input")}
    files = (Attachment(name="train.sh", content="--bf16"),)
    result = asked(
        answers,
        question("q1", "answered", "a", framework="trl", attachments=files),
        question("q2", "answered", "a", language="zh"),
    )
    assert {name: figures.first.right for name, figures in result.groups.items()} == {
        "framework none": 0,
        "framework trl": 1,
        "language en": 1,
        "language zh": 0,
        "paste question alone": 0,
        "paste with files": 1,
    }
    assert list(result.groups) == sorted(result.groups)


def test_a_share_of_nothing_has_no_value() -> None:
    assert share([]).value is None
    assert str(share([])) == "– (0/0)"


def test_a_share_is_shown_with_its_counts() -> None:
    assert share([True, False, True, True]).value == 0.75
    assert str(share([True, False, True, True])) == "0.750 (3/4)"


def test_an_evaluation_of_nothing_is_empty() -> None:
    result = evaluate([], answering({}))
    assert (result.outcomes, dict(result.groups), dict(result.confusion)) == ((), {}, {})
    assert result.overall.verdict == Share(right=0, total=0)


# -- showing


def test_the_table_has_a_row_for_all_and_for_each_group_and_the_verdicts() -> None:
    shown = table(asked({"q": answer("need_input")}, question("q", "answered", "a", framework="verl"))).splitlines()
    heads = shown[0].split()
    assert heads == ["first", "in_three", "f1", "verdict", "false_answers", "false_claims", "rules", "high", "medium"]
    assert [row.split("  ")[0].strip() for row in shown[1:5]] == [
        "all",
        "framework verl",
        "language en",
        "paste question alone",
    ]
    assert shown[-1].split() == ["answered", "→", "need_input", "1"]


def test_misses_name_the_item_what_was_wanted_and_what_came() -> None:
    answers = {
        "right": answer("answered", "a"),
        "verdict": answer("need_input", "a"),
        "cause": answer("answered", "x", "a", findings=(finding("r2"),)),
        "rules": answer("answered", "a"),
        "nothing": answer("not_in_kb"),
    }
    result = asked(
        answers,
        question("right", "answered", "a"),
        question("verdict", "answered", "a"),
        question("cause", "answered", "a", "b"),
        question("rules", "answered", "a", rules=("r1",)),
        question("nothing", "need_input"),
    )
    assert misses(result).splitlines() == [
        "verdict: answered/a got need_input/a rank 1 fired -",
        "cause: answered/a,b got answered/x rank 2 fired r2",
        "rules: answered/a got answered/a rank 1 fired -",
        "nothing: need_input/- got not_in_kb/- rank None fired -",
    ]


def test_there_are_no_misses_where_all_is_right() -> None:
    result = asked({"q": answer("no_fault")}, question("q", "no_fault"))
    assert misses(result) == ""


def test_the_same_answers_give_the_same_table_and_misses() -> None:
    answers = {name: answer(cast(Verdict, verdict), "x") for name, verdict in (("q1", "answered"), ("q2", "no_fault"))}
    items = (question("q1", "answered", "a", framework="trl"), question("q2", "not_in_kb", language="zh"))
    first, second = asked(answers, *items), asked(answers, *items)
    assert (table(first), misses(first)) == (table(second), misses(second))
