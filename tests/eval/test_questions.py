"""The evaluation set is sound: what it expects exists, and each part lies in its own files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.shipped import shipped_cases, shipped_rules
from trainmedic.ui.evaluation.causes import Item, read_items
from trainmedic.ui.loading import read_pages

FOLDER = Path(__file__).parent
HELD_OUT = FOLDER / "held_out.jsonl"
FOUNDING = (
    "openrlhf-kto-vanilla-loss-nan",
    "kto-logits-sum-not-explosion",
    "swift-dpo-sequence-parallel-nan",
    "gemma2-flash-attn-softcap-nan",
    "fp16-trainable-head-adam-eps-nan",
)


@pytest.fixture(scope="module")
def items() -> tuple[Item, ...]:
    return read_items(FOLDER)


def test_every_expected_case_exists(items: tuple[Item, ...]) -> None:
    known = {cause.id for cause in read_pages().cases.cases}
    assert {f"{item.id}: {case}" for item in items for case in item.cases if case not in known} == set()


def test_every_question_can_be_answered_from_a_published_page(items: tuple[Item, ...]) -> None:
    published = {cause.id for cause in read_pages().cases.published}
    assert [item.id for item in items if item.cases and not published & set(item.cases)] == []


def test_every_expected_rule_exists(items: tuple[Item, ...]) -> None:
    known = {rule.id for rule in shipped_rules().rules}
    named = {(item.id, rule) for item in items for rule in (*item.rules, *item.silent)}
    assert {pair for pair in named if pair[1] not in known} == set()


def test_few_published_cases_have_no_question_yet(items: tuple[Item, ...]) -> None:
    asked = {case for item in items for case in item.cases}
    published = [case for case in shipped_cases().published if case.family != "code"]  # those only code shows
    assert len([case.id for case in published if case.id not in asked]) <= len(published) / 20


def test_the_founding_incidents_are_asked_about_six_times(items: tuple[Item, ...]) -> None:
    asked = Counter(case for item in items for case in item.cases)
    assert all(asked[case] >= 6 for case in FOUNDING)


def test_sixty_questions_must_not_be_answered(items: tuple[Item, ...]) -> None:
    assert sum(item.verdict != "answered" for item in items) >= 60


def test_a_third_is_held_out_in_a_file_of_its_own(items: tuple[Item, ...]) -> None:
    held_out = {item.id for item in read_items(HELD_OUT)}
    assert {item.id for item in items if item.split == "held_out"} == held_out
    assert 0.29 <= len(held_out) / len(items) <= 0.4


def test_the_held_out_part_has_everything_that_the_whole_has(items: tuple[Item, ...]) -> None:
    held_out = [item for item in items if item.split == "held_out"]
    must_not = sum(item.verdict != "answered" for item in held_out)
    assert 0.25 <= must_not / len(held_out) <= 0.5
    assert {item.verdict for item in held_out} == {"answered", "need_input", "no_fault", "not_in_kb"}
    assert len({item.framework for item in held_out}) >= 10


def test_both_languages_and_both_kinds_of_paste_are_in_both_parts(items: tuple[Item, ...]) -> None:
    kinds = Counter((item.split, item.language, bool(item.attachments)) for item in items)
    assert len(kinds) == 8
    assert min(kinds.values()) >= 5
    assert 0.35 <= sum(item.language == "zh" for item in items) / len(items) <= 0.5
    assert 0.4 <= sum(bool(item.attachments) for item in items) / len(items) <= 0.6


def test_an_answered_question_names_a_case_and_a_not_in_kb_question_does_not(items: tuple[Item, ...]) -> None:
    assert [item.id for item in items if item.verdict == "answered" and not item.cases] == []
    assert [item.id for item in items if item.verdict == "not_in_kb" and item.cases] == []


def test_a_question_in_chinese_is_marked_as_chinese(items: tuple[Item, ...]) -> None:
    def chinese(text: str) -> bool:
        return any("\u4e00" <= char <= "\u9fff" for char in text)

    assert [item.id for item in items if (item.language == "zh") != chinese(item.question)] == []


def test_no_question_is_the_wording_of_a_case_page(items: tuple[Item, ...]) -> None:
    pages = shipped_cases().cases
    symptoms = {text.casefold().strip() for case in pages for texts in case.symptoms.values() for text in texts}
    titles = {title.casefold().strip() for case in pages for title in (case.title.en, case.title.zh)}
    assert [item.id for item in items if item.question.casefold().strip() in symptoms | titles] == []
