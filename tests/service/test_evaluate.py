"""The evaluation counts what it says it counts, shown with an answerer of known answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from trainmedic.kb.errors import InvalidRequest
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report_view import FindingView, ReceiptView, RunView
from trainmedic.service.answer.schema import Answer, CauseView, Confidence, Verdict
from trainmedic.ui.evaluation.causes import (
    Evaluation,
    Item,
    Share,
    evaluate,
    read_items,
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


def told(*pairs: tuple[Item, Answer]) -> Evaluation:
    """The evaluation of an answerer that knows what to say to each question."""
    answers = {one.question: given for one, given in pairs}
    return evaluate([one for one, _ in pairs], lambda ask: answers[ask.question])


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


def test_items_keep_the_order_of_the_file_and_blank_lines_do_not_count(questions: Callable[..., Path]) -> None:
    read = read_items(questions(line(id="b"), "", "   ", line(id="a"), ""))
    assert [one.id for one in read] == ["b", "a"]


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


# -- figures


def test_first_and_in_three_count_where_the_right_cause_stands() -> None:
    named = (("right", "x", "y"), ("x", "y", "right"), ("x", "y", "z", "right"), ("x",))
    result = told(*((question(f"q{n}", "answered", "right"), answer("answered", *all)) for n, all in enumerate(named)))
    assert [one.rank for one in result.outcomes] == [1, 3, 4, None]
    assert result.overall.first == Share(right=1, total=4)
    assert result.overall.in_three == Share(right=2, total=4)


def test_f1_counts_a_wrong_name_a_missed_one_and_a_name_where_there_is_none() -> None:
    unsure = answer("need_input", "x")
    result = told(
        (question("right", "answered", "a"), answer("answered", "a")),
        (question("wrong", "answered", "a"), answer("answered", "x")),
        (question("missed", "answered", "a"), answer("not_in_kb")),
        (question("named for nothing"), answer("answered", "x")),
        (
            question("only listed"),
            replace(unsure, causes=tuple(replace(each, score=0.2) for each in unsure.causes)),
        ),
        (question("rightly nothing"), answer("not_in_kb")),
    )
    assert result.overall.f1 == Share(right=2, total=3 + 3)


def test_a_false_answer_is_an_answer_where_there_must_be_none_and_with_low_confidence_no_claim() -> None:
    result = told(
        (question("vague", "need_input"), answer("answered", "x")),
        (question("unsure", "need_input"), answer("answered", "x", confidence="low")),
        (question("outside", "not_in_kb"), answer("not_in_kb")),
        (question("healthy", "no_fault"), answer("need_input")),
        (question("fault", "answered", "right"), answer("answered", "wrong")),
    )
    assert [one.item.id for one in result.outcomes if one.false_answer] == ["vague", "unsure"]
    assert result.overall.false_answers == Share(right=2, total=4)
    assert result.overall.false_claims == Share(right=1, total=4)


def test_verdicts_are_counted_by_what_was_expected_and_what_was_given() -> None:
    result = told(
        (question("q1", "answered", "a"), answer("answered", "a")),
        (question("q2", "answered", "a"), answer("need_input")),
        (question("q3", "answered", "a"), answer("need_input")),
        (question("q4", "not_in_kb"), answer("no_fault")),
    )
    counts = {("answered", "answered"): 1, ("answered", "need_input"): 2, ("not_in_kb", "no_fault"): 1}
    assert list(result.confusion.items()) == list(counts.items())


def test_rules_are_right_if_all_that_must_fire_did_and_none_that_must_be_silent() -> None:
    fired = answer("answered", "a", findings=(finding("r1"), finding("r2"), finding("r4", "cannot_tell")))
    result = told(
        (question("both", "answered", "a", rules=("r1", "r2")), fired),
        (question("one more", "answered", "a", rules=("r1", "r3")), fired),
        (question("cannot tell", "answered", "a", rules=("r4",)), fired),
        (question("silent", "answered", "a", silent=("r3",)), fired),
        (question("not silent", "answered", "a", rules=("r1",), silent=("r2",)), fired),
        (question("no rules", "answered", "a"), fired),
    )
    assert [one.rules_right for one in result.outcomes] == [True, False, False, True, False, True]
    assert result.overall.rules == Share(right=2, total=5)


def test_a_confidence_promises_that_the_first_cause_is_right() -> None:
    result = told(
        (question("sure", "answered", "a"), answer("answered", "a", confidence="high")),
        (question("sure and wrong", "answered", "a"), answer("answered", "x", "a", confidence="high")),
        (question("sure of nothing", "no_fault"), answer("no_fault", "x", confidence="high")),
        (question("fairly sure", "answered", "a"), answer("answered", "a", confidence="medium")),
        (question("unsure", "answered", "a"), answer("need_input", "a", confidence="low")),
    )
    assert result.overall.high == Share(right=1, total=3)
    assert result.overall.medium == Share(right=1, total=1)


def test_groups_are_by_language_framework_and_paste() -> None:
    files = (Attachment(name="train.sh", content="--bf16"),)
    result = told(
        (question("q1", "answered", "a", framework="trl", attachments=files), answer("answered", "a")),
        (question("q2", "answered", "a", language="zh"), answer("need_input")),
    )
    assert [(name, figures.first.right) for name, figures in result.groups.items()] == [
        ("framework none", 0),
        ("framework trl", 1),
        ("language en", 1),
        ("language zh", 0),
        ("paste question alone", 0),
        ("paste with files", 1),
    ]
