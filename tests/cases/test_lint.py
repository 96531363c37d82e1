"""The lint finds each kind of mistake on a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import pytest

from tests.cases.test_page import PAGE
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.report import Reference, Text
from trainmedic.kb.pages.case import CaseSet, PageFailure, load_cases, read_case
from trainmedic.kb.pages.case_lint import lint_cases


@dataclass(frozen=True)
class Rule:
    id: str
    cases: tuple[str, ...]


@dataclass(frozen=True)
class Rules:
    rules: tuple[Rule, ...]


def toy() -> Case:
    text = PAGE.replace("related: [other-case]\n", "").replace("```bash\n### not a heading\n```", "Set `a`.")
    case = read_case(text.replace("改。", "设置 `a`。"), "toy-case")
    assert isinstance(case, Case)
    return case


def problems(**changes: Any) -> tuple[str, ...]:
    return lint_cases(CaseSet(cases=(replace(toy(), **changes),)), today=date(2026, 11, 21))


def both(en: str, zh: str) -> Mapping[str, Mapping[str, str]]:
    sections = toy().sections
    return {"en": {**sections["en"], "fix": en}, "zh": {**sections["zh"], "fix": zh}}


def test_a_good_page_has_no_problem() -> None:
    assert problems() == ()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": "Toy_Case"}, "id must be lower-case"),
        ({"status": "hidden"}, "neither published nor draft"),
        ({"kind": "bug"}, "neither fault nor artefact"),
        ({"evidence": "sure"}, "evidence 'sure'"),
        ({"evidence": "maintainer"}, "no source is one"),
        ({"evidence": "source-read"}, "no source is source code"),
        ({"evidence": "reporter", "sources": (Reference(url="https://a.b/c", says="docs"),)}, "graded reporter"),
        ({"rules": ("r",)}, "give either rules, or no_rule"),
        ({"no_rule": ""}, "give either rules, or no_rule"),
        ({"signals": ("oom", "oom")}, "signals names something twice"),
        ({"related": ("toy-case",)}, "is related to itself"),
        ({"related": ("nowhere",)}, "related case 'nowhere' does not exist"),
        ({"family": "magic"}, "unknown family 'magic'"),
        ({"frameworks": ("keras",)}, "unknown framework 'keras'"),
        ({"frameworks": ()}, "names no framework"),
        ({"algorithms": ("sgd",)}, "unknown algorithm 'sgd'"),
        ({"stages": ("lunch",)}, "unknown stage 'lunch'"),
        ({"affected": {"trl": "1.0 to 2.0"}}, "is not a version range"),
        ({"fixed": {"trl": "soon"}}, "is not a version"),
        ({"fixed": {"trl": "1.5"}}, "lies in the affected range"),
        ({"symptoms": {"en": ("a",), "zh": ("甲", "乙", "丙", "丁")}}, "symptoms.en: 1, at least 4"),
        ({"symptoms": {"en": ("a", "A", "b", "c"), "zh": ("甲", "乙", "丙", "丁")}}, "the same wording twice"),
        ({"title": Text(en="Toy", zh="Toy")}, "holds no Chinese"),
        ({"title": Text(en="玩具", zh="玩具")}, "the English text holds Chinese"),
        ({"refutations": ()}, "has no refutation"),
        ({"ask": ()}, "asks for no fact"),
        ({"sources": ()}, "has no source"),
        ({"sources": (Reference(url="http://a.b/c", says="reporter"),)}, "not a full https address"),
        ({"sources": (Reference(url="https://a.b/c", says="rumour"),)}, "says 'rumour'"),
        ({"reviewed": "yesterday"}, "is not a date"),
        ({"reviewed": "2026-11-22"}, "lies in the future"),
        ({"sections": both("", "改。")}, "section 'Fix' of en is missing"),
        ({"sections": both("Use `--bf16`.", "用它。")}, "'--bf16' stands in en, not in zh"),
        ({"sections": both("Use it.", "用 `--bf16`。")}, "'--bf16' stands in zh, not in en"),
        ({"sections": both("From 0.3.5 on.", "从 0.3.4 起。")}, "'0.3.5' stands in en, not in zh"),
        ({"sections": both("Do\n```\na\n```", "改\n```\nb\n```")}, "stands in en, not in zh"),
    ],
)
def test_a_mistake_is_named(changes: dict[str, Any], message: str) -> None:
    assert any(message in problem for problem in problems(**changes)), problems(**changes)


def test_refuting_a_claim_twice_is_a_problem() -> None:
    assert any("the same claim twice" in item for item in problems(refutations=toy().refutations * 2))


def test_signals_and_settings_are_checked_against_the_words_given() -> None:
    caseset = CaseSet(cases=(replace(toy(), signals=("nonsense",), settings=("knob",)),))
    found = lint_cases(caseset, signals={"oom"}, settings={"beta"})
    assert [item.split(": ", 1)[1] for item in found] == ["unknown setting 'knob'", "unknown signal 'nonsense'"]
    assert lint_cases(caseset) == ()


def test_rule_and_case_must_name_each_other() -> None:
    case = replace(toy(), rules=("known", "forgetful", "missing"), no_rule="")
    rules = Rules((Rule("known", ("toy-case",)), Rule("forgetful", ()), Rule("stray", ("toy-case", "gone"))))
    assert lint_cases(CaseSet(cases=(case,)), rules) == (
        "rule stray: case 'gone' does not exist",
        "rule stray: case 'toy-case' does not name this rule",
        "toy-case: rule 'forgetful' does not name this case",
        "toy-case: rule 'missing' does not exist",
    )


def test_pages_that_did_not_load_come_first() -> None:
    broken = PageFailure(page="z.md", line=3, message="not YAML")
    assert lint_cases(CaseSet(cases=(replace(toy(), kind="bug"),), failures=(broken,)))[0] == "z.md:3: not YAML"


def test_a_draft_may_lack_refutations_and_questions() -> None:
    assert problems(status="draft", refutations=(), ask=()) == ()


FOUNDING = (
    "fp16-trainable-head-adam-eps-nan",
    "gemma2-flash-attn-softcap-nan",
    "kto-logits-sum-not-explosion",
    "openrlhf-kto-vanilla-loss-nan",
    "swift-dpo-sequence-parallel-nan",
)


def test_the_shipped_pages_load_and_have_no_problem() -> None:
    assert lint_cases(load_cases()) == ()


def test_the_shipped_pages_name_real_signals_and_settings() -> None:
    kinds = pytest.importorskip("trainmedic.kb.parse.signal_kinds").KINDS
    specs = pytest.importorskip("trainmedic.kb.frameworks.settings").specs()
    assert lint_cases(load_cases(), signals=set(kinds), settings=set(specs)) == ()


def test_the_shipped_pages_and_rules_name_each_other() -> None:
    page = pytest.importorskip("trainmedic.kb.pages.rule")
    assert lint_cases(load_cases(), page.load_rules()) == ()


@pytest.mark.parametrize("case_id", FOUNDING)
def test_a_founding_case_is_told_in_full(case_id: str) -> None:
    case = load_cases().get(case_id)
    assert case is not None
    assert min(len(case.symptoms["en"]), len(case.symptoms["zh"])) >= 8
    assert len(case.refutations) >= 7
    assert len(case.ask) >= 3
    assert "```" in case.section("fix", "en") or case.kind == "artefact"
