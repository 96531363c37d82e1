"""The lint finds each kind of mistake on a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from tests.causes.test_page import PAGE, case
from tests.every_case import every_case
from tests.shipped import shipped_cases
from trainmedic.ingest.authoring.lint import lint
from trainmedic.ingest.authoring.page_lint import lint_case
from trainmedic.kb.engine.rule import RuleSet
from trainmedic.kb.engine.vocabulary import vocabulary
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.report import Reference, Text
from trainmedic.kb.pages.case import CaseSet, load_cases
from trainmedic.kb.parse.pipeline import parse


def toy() -> Case:
    text = PAGE.replace("related: [other-case]\n", "").replace("```bash\n### not a heading\n```", "Set `a`.")
    return case(text.replace("改。", "设置 `a`。"))


def problems(**changes: Any) -> tuple[str, ...]:
    changed = replace(toy(), **changes)
    found = lint_case(changed, CaseSet(cases=(changed,)), vocabulary(), date(2026, 11, 21))
    return tuple(problem.message for problem in found)


def both(en: str, zh: str) -> Mapping[str, Mapping[str, str]]:
    sections = toy().sections
    return {"en": {**sections["en"], "fix": en}, "zh": {**sections["zh"], "fix": zh}}


def test_a_good_page_has_no_problem() -> None:
    assert problems() == ()


@every_case(
    ("changes", "message"),
    [
        ({"evidence": "sure"}, "unknown grade 'sure'"),
        ({"evidence": "maintainer"}, "no source says 'maintainer'"),
        ({"evidence": "source-read"}, "no source says 'source'"),
        (
            {"evidence": "reporter", "sources": (Reference(url="https://a.b/c", says="docs"),)},
            "is reporter, but no source",
        ),
        ({"rules": ("r",)}, "give either checks, or no_rule"),
        ({"no_rule": ""}, "give either checks, or no_rule"),
        ({"signals": ("nonsense",)}, "signals: unknown word 'nonsense'"),
        ({"settings": ("learning_rat",)}, "did you mean 'learning_rate'?"),
        ({"signals": ("oom", "oom")}, "signals: a word occurs twice"),
        ({"related": ("toy-case",)}, "related to itself"),
        ({"related": ("nowhere",)}, "there is no case 'nowhere'"),
        ({"family": "magic"}, "family: unknown word 'magic'"),
        ({"frameworks": ("keras",)}, "frameworks: unknown word 'keras'"),
        ({"frameworks": ()}, "name at least one framework"),
        ({"algorithms": ("sgd",)}, "algorithms: unknown word 'sgd'"),
        ({"stages": ("lunch",)}, "stages: unknown word 'lunch'; known: distill"),
        ({"affected": {"trl": "1.0 to 2.0"}}, "is not a version range"),
        ({"fixed": {"trl": "soon"}}, "is not a version"),
        ({"fixed": {"trl": "1.5"}}, "lies in the affected range"),
        ({"symptoms": {"en": ("a",), "zh": ("甲", "乙", "丙", "丁")}}, "symptoms: en has 1, at least 4"),
        ({"symptoms": {"en": ("a", "A", "b", "c"), "zh": ("甲", "乙", "丙", "丁")}}, "the same wording twice"),
        ({"title": Text(en="Toy", zh="Toy")}, "holds no Chinese"),
        ({"title": Text(en="玩具", zh="玩具")}, "the English text holds Chinese"),
        ({"refutations": ()}, "refutations: say what"),
        ({"ask": ()}, "ask: name a fact"),
        ({"sources": ()}, "sources: name at least one"),
        ({"sources": (Reference(url="http://a.b/c", says="reporter"),)}, "not a full https address"),
        ({"reviewed": "yesterday"}, "is not a date"),
        ({"reviewed": "2026-11-22"}, "lies in the future"),
        ({"sections": both("", "改。")}, "en/Fix: the section is missing"),
        ({"sections": both("Use `--bf16`.", "用它。")}, "'--bf16' is in the English text"),
        ({"sections": both("Use it.", "用 `--bf16`。")}, "'--bf16' is in the Chinese text"),
        ({"sections": both("From 0.3.5 on.", "从 0.3.4 起。")}, "'0.3.5' is in the English text"),
        ({"sections": both("Do\n```\na\n```", "改\n```\nb\n```")}, "is in the English text"),
    ],
)
def test_a_mistake_is_named(changes: dict[str, Any], message: str) -> None:
    assert any(message in problem for problem in problems(**changes)), problems(**changes)


def test_refuting_a_claim_twice_is_a_problem() -> None:
    assert any("the same claim occurs twice" in item for item in problems(refutations=toy().refutations * 2))


def test_a_problem_has_the_line_of_its_field(tmp_path: Path) -> None:
    page = tmp_path / "toy-case.md"
    page.write_text(PAGE.replace("family: data", "family: datta"), encoding="utf-8")
    found = lint(RuleSet(rules=()), load_cases((page,)), parse, vocabulary(), only={page.as_posix()})
    assert [str(problem).removeprefix(f"{tmp_path}/") for problem in found] == [
        "toy-case.md:5: family: unknown word 'datta'; did you mean 'data'?",
        "toy-case.md:19: related: there is no case 'other-case'",
        "toy-case.md:26: en/Fix: '### not a heading\\n' is in the English text, not in the Chinese one",
    ]


def in_one_language(**changes: Any) -> tuple[str, ...]:
    sections = {"en": {"symptom": "It is broken.", "cause": "Because."}, "zh": {}}
    title, symptoms = Text(en="Toy", zh="Toy"), {"en": ("a",), "zh": ()}
    bare: dict[str, Any] = {"sections": sections, "title": title, "symptoms": symptoms, "refutations": (), "ask": ()}
    return problems(**{**bare, "languages": ("en",), "no_rule": "", **changes})


def test_a_page_in_one_language_needs_no_more_than_what_is_seen_and_why() -> None:
    assert in_one_language() == ()
    assert any("family" in message for message in in_one_language(family="magic"))
    assert any("en/Symptom" in message for message in in_one_language(sections={"en": {"cause": "Because."}}))


def test_a_page_without_the_words_of_users_needs_a_check() -> None:
    sections = {language: {name: "x" for name in ("cause", "fix", "confirm")} for language in ("en", "zh")}
    bare: dict[str, Any] = {"symptoms": {}, "refutations": (), "ask": (), "frameworks": (), "sections": sections}
    assert problems(**bare, no_rule="", rules=("a-check",)) == ()
    assert problems(**bare) == ("symptoms: give the words of users, or a check",)


def test_a_draft_may_lack_refutations_and_questions() -> None:
    assert problems(status="draft", refutations=(), ask=()) == ()


FOUNDING = (
    "fp16-trainable-head-adam-eps-nan",
    "gemma2-flash-attn-softcap-nan",
    "kto-logits-sum-not-explosion",
    "openrlhf-kto-vanilla-loss-nan",
    "swift-dpo-sequence-parallel-nan",
)


def test_the_shipped_pages_have_no_problem() -> None:
    cases = shipped_cases()
    assert cases.failures == ()
    words = vocabulary()
    assert [str(problem) for case in cases.cases for problem in lint_case(case, cases, words)] == []


@every_case("case_id", FOUNDING)
def test_a_founding_case_is_told_in_full(case_id: str) -> None:
    case = shipped_cases().get(case_id)
    assert case is not None
    assert min(len(case.symptoms["en"]), len(case.symptoms["zh"])) >= 8
    assert len(case.refutations) >= 7
    assert len(case.ask) >= 3
    assert "```" in case.section("fix", "en") or case.kind == "artefact"
