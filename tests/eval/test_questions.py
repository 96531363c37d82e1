"""The evaluation set is sound: what it expects exists, the split follows its rule, every case is asked about."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from kb.cases.page import load_cases
from kb.rules.page import load_rules
from service.evaluate import Item, read_items

QUESTIONS = Path(__file__).with_name("questions.jsonl")
DRAFTS = Path(__file__).with_name("drafts.jsonl")
FOUNDING = (
    "openrlhf-kto-vanilla-loss-nan",
    "kto-logits-sum-not-explosion",
    "swift-dpo-sequence-parallel-nan",
    "gemma2-flash-attn-softcap-nan",
    "fp16-trainable-head-adam-eps-nan",
)


@pytest.fixture(scope="module")
def items() -> tuple[Item, ...]:
    return read_items(QUESTIONS)


@pytest.fixture(scope="module")
def drafts() -> tuple[Item, ...]:
    return read_items(DRAFTS)


def test_every_expected_case_exists(items: tuple[Item, ...], drafts: tuple[Item, ...]) -> None:
    known = {case.id for case in load_cases().cases}
    assert {f"{item.id}: {case}" for item in items + drafts for case in item.cases if case not in known} == set()


def test_every_question_can_be_answered_from_a_published_page(items: tuple[Item, ...]) -> None:
    published = {case.id for case in load_cases().cases if case.status == "published"}
    assert [item.id for item in items if item.cases and not published & set(item.cases)] == []


def test_no_id_is_in_both_files(items: tuple[Item, ...], drafts: tuple[Item, ...]) -> None:
    assert {item.id for item in items} & {item.id for item in drafts} == set()


def test_every_expected_rule_exists(items: tuple[Item, ...]) -> None:
    known = {rule.id for rule in load_rules().rules}
    named = {(item.id, rule) for item in items for rule in (*item.rules, *item.silent)}
    assert {pair for pair in named if pair[1] not in known} == set()


def test_every_published_case_is_asked_about_three_times(items: tuple[Item, ...]) -> None:
    asked = Counter(case for item in items for case in item.cases)
    published = [case.id for case in load_cases().cases if case.status == "published"]
    assert {case: asked[case] for case in published if asked[case] < 3} == {}


def test_the_founding_incidents_are_asked_about_six_times(items: tuple[Item, ...]) -> None:
    asked = Counter(case for item in items for case in item.cases)
    assert all(asked[case] >= 6 for case in FOUNDING)


def test_fifty_questions_must_not_be_answered(items: tuple[Item, ...]) -> None:
    assert sum(item.verdict != "answered" for item in items) >= 50


def test_a_question_is_held_out_if_its_number_is_divisible_by_three(
    items: tuple[Item, ...], drafts: tuple[Item, ...]
) -> None:
    wrong = [i.id for i in items + drafts if (i.split == "held_out") != (int(i.id.rpartition("-")[2]) % 3 == 0)]
    assert wrong == []


def test_numbers_of_a_group_have_no_gap(items: tuple[Item, ...]) -> None:
    groups: dict[str, list[int]] = {}
    for item in items:
        group, _, number = item.id.rpartition("-")
        groups.setdefault(group, []).append(int(number))
    assert {group for group, numbers in groups.items() if sorted(numbers) != list(range(1, len(numbers) + 1))} == set()


def test_both_languages_and_both_kinds_of_paste_are_in_both_parts(items: tuple[Item, ...]) -> None:
    kinds = Counter((item.split, item.language, bool(item.attachments)) for item in items)
    assert len(kinds) == 8
    assert min(kinds.values()) >= 5
    assert 0.35 <= sum(item.language == "zh" for item in items) / len(items) <= 0.5
    assert 0.4 <= sum(bool(item.attachments) for item in items) / len(items) <= 0.6


def test_an_answered_question_names_a_case_and_a_not_in_kb_question_does_not(items: tuple[Item, ...]) -> None:
    assert [item.id for item in items if item.verdict == "answered" and not item.cases] == []
    assert [item.id for item in items if item.verdict in ("not_in_kb", "need_input") and item.cases] == []


def test_a_question_in_chinese_is_marked_as_chinese(items: tuple[Item, ...]) -> None:
    def chinese(text: str) -> bool:
        return any("\u4e00" <= char <= "\u9fff" for char in text)

    assert [item.id for item in items if (item.language == "zh") != chinese(item.question)] == []


def test_no_question_is_the_wording_of_a_case_page(items: tuple[Item, ...]) -> None:
    pages = load_cases().cases
    symptoms = {text.casefold().strip() for case in pages for texts in case.symptoms.values() for text in texts}
    titles = {title.casefold().strip() for case in pages for title in (case.title.en, case.title.zh)}
    assert [item.id for item in items if item.question.casefold().strip() in symptoms | titles] == []
