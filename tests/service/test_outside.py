"""Incidents of outside threads: when a cause counts as right, what the figures count, and what a replay sends."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.eval.outside.split import UNSEEN_FAMILIES, side
from tests.every_case import every_case
from tests.service.test_evaluate import answer as answer_with
from tests.service.values import both, case
from trainmedic.kb.errors import InvalidRequest
from trainmedic.kb.model.case import Case, Level
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report_view import MissingView
from trainmedic.service.answer.schema import Answer, CauseView, Verdict
from trainmedic.service.dialogue.request import Ask
from trainmedic.ui.evaluation.causes import Share
from trainmedic.ui.evaluation.outside import (
    SIDES,
    Incident,
    Result,
    Scorer,
    ask_all,
    aurc,
    lower_bound,
    mentions,
    outside_figures,
    passages,
    read_incidents,
    risk_coverage,
    was_given,
)
from trainmedic.ui.evaluation.replay import MESSAGES, replay, replies

FOLDER = Path("tests/eval/outside")


def incident(id: str = "one", **changes: object) -> Incident:
    values: dict[str, object] = {
        "id": id,
        "thread": f"https://example.org/{id}",
        "family": "trl",
        "language": "en",
        "question": {"en": f"{id}: the loss is nan", "zh": f"{id}：loss 变成 nan"},
        "attachments": (),
        "expect": "cause",
        "cause": {"en": "padding", "zh": "填充"},
        "required": (("pad token", "填充"), ("eos",)),
        "mechanism": (("masked",),),
        "kind": "setting",
    }
    return Incident(**(values | changes))  # type: ignore[arg-type]


def view(case_id: str, rank: int = 1, confidence: str = "medium", score: float = 0.7, **changes: object) -> CauseView:
    values: dict[str, object] = {
        "rank": rank,
        "case_id": case_id,
        "title": f"title of {case_id}",
        "cause": "",
        "fix": "",
        "confidence": confidence,
        "score": score,
        "evidence_grade": "maintainer",
        "cases": (),
        "findings": (),
        "refutations": (),
    }
    return CauseView(**(values | changes))  # type: ignore[arg-type]


def answer(*causes: CauseView, verdict: Verdict = "answered", missing: tuple[str, ...] = ()) -> Answer:
    empty = answer_with(verdict)
    asked = tuple(MissingView(fact=fact, why="", ask=f"{fact}?") for fact in missing)
    return replace(empty, causes=causes, missing=asked, conversation_id="conversation")


def page(id: str, cause: str, fix: str = "", zh: str = "", level: Level = "case") -> Case:
    sections = {"en": {"cause": cause, "fix": fix}, "zh": {"cause": zh, "fix": ""}}
    return case(id, title=both(f"title of {id}"), sections=sections, level=level)


RIGHT = page("right", "The pad token is the EOS token, so EOS is masked.")
ALIKE = page("alike", "The labels are masked.")
WRONG = page("wrong", "The learning rate is too high.")


def scorer(*pages: Case) -> Scorer:
    return Scorer({item.id: item for item in pages or (RIGHT, ALIKE, WRONG)})


# What counts as mentioned


@every_case(
    ("text", "groups", "found"),
    [
        ("300 steps", (("eps",),), False), ("steps, then eps", (("eps",),), True),
        ("the gradients overflow", (("gradient",),), True), ("Pad_Token", (("pad-token",),), True),
        ("pad\n  token", (("PAD TOKEN",),), True), ("把填充标记改掉", (("填充",),), True),
        ("用bf16训练", (("bf16",),), True), ("padding hides EOS", (("pad token", "padding"), ("eos",)), True),
        ("padding and pad token", (("pad token", "padding"), ("eos",)), False), ("nothing", (("",),), False),
    ],
)  # fmt: skip
def test_every_group_must_be_mentioned_by_one_alternative_that_begins_a_word(
    text: str, groups: tuple[tuple[str, ...], ...], found: bool
) -> None:
    assert mentions(text, groups) is found


# What a page states


def test_words_scattered_over_paragraphs_prove_nothing() -> None:
    scattered = page("scattered", "The pad token is wrong.\n\nEOS is another matter.")
    assert scorer(scattered).right(incident().required) == frozenset()


def test_a_paragraph_is_judged_with_title_and_fix() -> None:
    assert passages(page("p", "one\n\ntwo", "set eos"))[:2] == ("title of p\none\nset eos", "title of p\ntwo\nset eos")
    assert scorer(page("p", "The pad token is wrong.", "set eos")).right(incident().required) == {"p"}


def test_one_language_suffices_but_two_are_not_mixed() -> None:
    required = (("填充",), ("截断",))
    assert scorer(page("zh", "", zh="填充以后被截断")).right(required) == {"zh"}
    assert scorer(page("mixed", "截断", zh="填充")).right(required) == frozenset()


def test_a_mechanism_is_not_judged_by_the_fixes_of_all_its_origins() -> None:
    mechanism = page("m", "The pad token is wrong.", "- set eos", level="mechanism")
    assert scorer(mechanism).right(incident().required) == frozenset()


def test_a_mechanism_counts_with_the_first_origin_of_the_answer_alone() -> None:
    mechanism = page("m", "The pad token is wrong.", level="mechanism")
    first = view("m", level="mechanism", cause="The pad token is wrong.", fix="EOS: change it\nother: leave it")
    second = replace(first, fix="other: leave it\nEOS: change it")
    assert scorer(mechanism).states(first, incident().required)
    assert not scorer(mechanism).states(second, incident().required)
    assert not scorer(mechanism).states(replace(first, level="case"), incident().required)


def test_a_thread_that_a_page_names_as_its_source_is_marked() -> None:
    for thread, cited in (("https://example.org/1#comment", True), ("https://example.org/2", False)):
        assert scorer().result(incident(thread=thread), "en", answer(view("right"))).cited is cited


# Results


def test_a_result_holds_the_first_right_place() -> None:
    result = scorer().result(incident(), "en", answer(view("wrong"), view("alike", 2), view("right", 3)))
    assert (result.rank, result.mechanism_rank) == (3, 2)
    assert (result.confidence, result.score, result.covered) == ("medium", 0.7, True)
    assert not result.first
    assert not result.answered


def test_an_answer_without_causes_and_findings_is_empty() -> None:
    result = scorer(WRONG).result(incident(), "en", answer(verdict="not_in_kb"))
    assert result.empty
    assert not result.covered
    assert (result.rank, result.confidence, result.score) == (None, "low", 0.0)


def test_naming_a_cause_with_low_confidence_is_no_claim() -> None:
    must_not = incident(expect="off_domain", required=(), mechanism=())
    for confidence, claimed in (("low", False), ("medium", True), ("high", True)):
        assert scorer().result(must_not, "en", answer(view("wrong", confidence=confidence))).claimed is claimed
    assert not scorer().result(must_not, "en", answer(view("wrong"), verdict="need_input")).claimed


def test_asking_for_what_was_given_is_counted() -> None:
    named = {"en": "the loss is nan with TRL 0.9.6"}
    given = incident(question=named, given=frozenset({"framework", "framework_version", "gpu"}))
    result = scorer().result(given, "en", answer(view("right"), missing=("framework", "version:trl", "version:peft")))
    assert result.asked_given == ("framework", "version:trl")
    assert was_given("card", given)
    assert not was_given("model", given)
    unnamed = replace(given, question={"en": "why is the loss nan?"}, attachments=())
    assert not was_given("framework", unnamed)


def test_a_log_that_is_only_described_may_be_requested() -> None:
    told = incident(given=frozenset({"log", "config"}))
    pasted = replace(told, attachments=(Attachment(name="log.txt", content="loss nan"),))
    assert not was_given("log", told)
    assert was_given("log", pasted)
    assert not was_given("config", pasted)
    assert was_given("config", replace(told, attachments=(Attachment(name="train.yaml", content="lr: 1"),)))


def test_every_incident_is_asked_in_every_language() -> None:
    questions: list[str] = []

    def record(request: Ask) -> Answer:
        questions.append(request.question)
        return answer(view("right"))

    results = ask_all([incident()], record, scorer(), ("en", "zh"))
    assert questions == list(incident().question.values())
    assert [result.language for result in results] == ["en", "zh"]
    assert [r.language for r in ask_all([incident(language="zh")], record, scorer())] == ["zh"]


# Figures


def outcome(
    id: str, *causes: str, verdict: Verdict = "answered", confidence: str = "medium", score: float = 0.7
) -> Result:
    listed = [view(cause, n, confidence, score) for n, cause in enumerate(causes, start=1)]
    return scorer().result(incident(id), "en", answer(*listed, verdict=verdict))


def test_figures_count_what_they_say() -> None:
    must_not = incident("must-not", expect="no_fault", required=(), mechanism=())
    figures = outside_figures(
        [
            outcome("a", "right", confidence="high", score=0.95), outcome("b", "wrong", "right"),
            outcome("c", "alike", verdict="need_input", confidence="low", score=0.2), outcome("d", verdict="no_fault"),
            scorer().result(must_not, "en", answer(view("wrong"))),
        ]
    )  # fmt: skip
    assert figures.first == Share(right=1, total=4)
    assert figures.in_three == Share(right=2, total=4)
    assert figures.first_and_answered == Share(right=1, total=4)
    assert figures.mechanism_first == Share(right=2, total=4)
    assert figures.coverage == Share(right=4, total=4)
    assert figures.high == Share(right=1, total=1)
    assert figures.at_high == Share(right=1, total=4)
    assert figures.medium == Share(right=0, total=1)
    assert figures.false_no_fault == Share(right=1, total=4)
    assert figures.empty == Share(right=1, total=4)
    assert figures.must_not_answered == Share(right=1, total=1)
    assert figures.aurc == pytest.approx((0 + 1 / 2 + 2 / 3 + 3 / 4) / 4)


def test_the_risk_coverage_curve_takes_ties_as_one_step() -> None:
    curve = risk_coverage([(0.9, True), (0.5, False), (0.5, True), (0.1, False)])
    assert [coverage for coverage, _ in curve] == [0.25, 0.75, 1.0]
    assert [risk for _, risk in curve] == pytest.approx([0.0, 1 / 3, 0.5])
    assert risk_coverage([]) == ()


def test_the_area_is_zero_if_all_is_right_and_the_error_rate_if_scores_say_nothing() -> None:
    assert aurc([(0.9, True), (0.2, True)]) == 0.0
    assert aurc([(0.5, True), (0.5, False), (0.5, False), (0.5, True)]) == 0.5
    assert aurc([(0.9, True), (0.1, False)]) < aurc([(0.1, True), (0.9, False)])


@every_case(
    ("right", "total", "bound"),
    [(0, 10, 0.0), (0, 0, 0.0), (10, 10, 0.05 ** (1 / 10)), (1, 1, 0.05), (9, 10, 0.6058), (95, 100, 0.8977)],
)
def test_the_lower_bound_is_that_of_clopper_and_pearson(right: int, total: int, bound: float) -> None:
    assert lower_bound(right, total) == pytest.approx(bound, abs=1e-4)


# Replay


class Reporter:
    """Answers rightly once a word was said; asks for ``missing`` until then."""

    def __init__(self, word: str, missing: tuple[str, ...]) -> None:
        self.requests: list[Ask] = []
        self._word, self._missing = word, missing

    def __call__(self, request: Ask) -> Answer:
        self.requests.append(request)
        if self._word in request.question:
            return answer(view("right"))
        return answer(view("wrong"), verdict="need_input", missing=self._missing)


def test_a_fact_that_is_requested_is_sent_as_the_next_message() -> None:
    known = incident(later={"framework_version": "0.15.2", "log": "reward_std 0"})
    program = Reporter("trl 0.15.2", ("version:trl", "dataset"))
    (found,) = replay([known], program, scorer())
    assert [request.question for request in program.requests] == [known.question["en"], "trl 0.15.2"]
    assert program.requests[1].conversation_id == "conversation"
    assert (found.messages, found.before.answered, found.after.answered) == (1, False, True)
    assert found.asked == ("version:trl", "dataset")
    assert found.supplied == ("version:trl",)


def test_nothing_is_sent_twice() -> None:
    program = Reporter("never", ("version:trl", "log"))
    (found,) = replay([incident(later={"framework_version": "trl main", "log": "nan"})], program, scorer())
    assert [request.question for request in program.requests[1:]] == ["trl main\nnan"]
    assert found.messages == 1
    assert not found.after.answered


def test_a_replay_ends_after_some_messages() -> None:
    facts = ("model", "dataset", "card", "framework", "algorithm", "log")

    def one_by_one(request: Ask) -> Answer:
        one_by_one.count += 1  # type: ignore[attr-defined]
        return answer(verdict="need_input", missing=(facts[one_by_one.count - 1],))  # type: ignore[attr-defined]

    one_by_one.count = 0  # type: ignore[attr-defined]
    later = {"model": "m", "dataset": "d", "gpu": "g", "framework": "f", "stage": "s", "log": "l"}
    (found,) = replay([incident(later=later)], one_by_one, scorer())
    assert found.messages == MESSAGES
    assert found.supplied == facts[:MESSAGES]


def test_incidents_answered_rightly_or_without_a_cause_are_not_replayed() -> None:
    must_not = incident("b", expect="vague", required=(), mechanism=())
    assert replay([incident("a"), must_not], lambda request: answer(view("right")), scorer(), ("en", "zh")) == ()


def test_what_a_reporter_can_send() -> None:
    later = {"pip": "datasets 5.0.0", "config": "zero stage 2", "dtype": "bf16", "framework_version": "0.9"}
    known = incident(later=later)
    assert replies("version:datasets", known) == ("pip",)
    assert replies("version:torch", known) == ()
    assert replies("version:trl", known) == ("framework_version",)
    assert replies("setting:zero_stage", known) == ("config",)
    assert replies("setting:weights_dtype", known) == ("dtype",)
    assert replies("config", known) == ("config",)
    assert replies("log", known) == ()


# The split and the data


def test_families_are_unseen_as_a_whole_and_the_split_is_stable() -> None:
    threads = [f"https://example.org/issues/{number}" for number in range(400)]
    for family in UNSEEN_FAMILIES:
        assert {side(family, thread) for thread in threads} == {"unseen"}
    sides = Counter(side("trl", thread) for thread in threads)
    assert 0.5 < sides["tuning"] / len(threads) < 0.63
    assert [side("trl", thread) for thread in threads[:6]] == [side("verl", thread) for thread in threads[:6]]
    assert side("trl", "https://example.org/issues/1") == "unseen"


def test_a_wrong_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "incidents.jsonl"
    path.write_text('{"id": "x"}\n', encoding="utf-8")
    with pytest.raises(InvalidRequest, match=r"incidents\.jsonl:1"):
        read_incidents(path)


def violations(incidents: Mapping[str, tuple[Incident, ...]]) -> Counter[str]:
    """What is wrong with the data, counted: no text of an incident may reach the output of a test run."""
    wrong: Counter[str] = Counter()
    sides: dict[str, set[str]] = defaultdict(set)
    ids: Counter[str] = Counter()
    threads: Counter[str] = Counter()
    for name, members in incidents.items():
        for one in members:
            with_cause = one.expect == "cause"
            ids[one.id] += 1
            threads[one.thread] += 1
            sides[one.thread].add(name)
            wrong["on the other side"] += side(one.family, one.thread, one.id) != name
            wrong["expectation"] += one.expect not in ("cause", "no_fault", "off_domain", "vague")
            wrong["question in two languages"] += {k for k, v in one.question.items() if v.strip()} != {"en", "zh"}
            wrong["cause in two languages"] += not {"en", "zh"} <= {k for k, v in one.cause.items() if v.strip()}
            wrong["language"] += one.language not in ("en", "zh")
            wrong["required words"] += bool(one.required) != with_cause
            wrong["mechanism of what has no cause"] += bool(one.mechanism) and not with_cause
            groups = (*one.required, *one.mechanism)
            wrong["empty group"] += not all(group and all(word.strip() for word in group) for group in groups)
            wrong["family or kind"] += not (one.family and one.kind)
            wrong["empty fact"] += not all(value.strip() for value in one.later.values())
    wrong["id twice"] = sum(count > 1 for count in ids.values())
    wrong["thread twice"] = sum(count > 1 for count in threads.values())
    wrong["thread on both sides"] = sum(len(names) > 1 for names in sides.values())
    return +wrong


def test_the_data_is_sound() -> None:
    incidents = {name: read_incidents(FOLDER / f"{name}.jsonl") for name in SIDES}
    assert violations(incidents) == Counter()
    everything = [one for members in incidents.values() for one in members]
    with_cause = sum(one.expect == "cause" for one in everything)
    counts = (with_cause >= 240, len(everything) - with_cause >= 60)
    assert counts == (True, True)
    assert {one.language for one in everything} == {"en", "zh"}
    families = {name: {one.family for one in members} for name, members in incidents.items()}
    assert not families["tuning"] & UNSEEN_FAMILIES
