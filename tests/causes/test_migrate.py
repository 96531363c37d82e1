"""Pages of one case or one rule each become pages of causes with their checks, and nothing is lost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.causes.test_page import PAGE
from trainmedic.ingest.authoring.migrate import Migration, migrate
from trainmedic.ingest.authoring.restated import Restated
from trainmedic.kb.engine.rule import Rule
from trainmedic.kb.pages.case import load_cases
from trainmedic.kb.pages.examples import examples_of
from trainmedic.kb.pages.rule import load_rules

CASE = PAGE.replace('no_rule: "it cannot be seen"', "rules: [second-rule, a-rule]").replace("[other-case]", "[]")
CASE = CASE.replace("It is broken.", "The loss of packed rows is broken.").replace("坏了。", "打包之后的损失坏掉了。")
LONG = " and ".join(f'option("an-option-{number}") == "{number}"' for number in range(9))
RULE = """---
id: {id}
title: {{en: "A rule", zh: "规则"}}
severity: error
status: stable
since: 0.1.0
concludes: fault
symptoms: [loss_nan]
applies: {{framework: [trl]}}
when: {when}
message: {{en: "seen", zh: "看到"}}
fix: []
cases: {cases}
sources:
  - {{url: "https://example.org/1", says: reporter, note: "seen there"}}
  - {{url: "https://example.org/2", says: docs, note: "a sentence of its own"}}
---
## en
### What it finds
The loss of packed rows is broken. Only on Mondays.
### Why it matters
Only 0.3.4 does that.
### What to do
Look.
## zh
### 检查什么
打包之后的损失坏掉了。只在周一。
### 为什么重要
只有 0.3.4 会。
### 怎么改
看。
## Fires
### It is set
```bash train.sh
## Fires
trl sft ⟦--packing⟧
```
## Silent
### It is not
```bash
ls
```
"""


def rule_text(id: str, cases: str = "[toy-case]", when: str = "packing") -> str:
    return RULE.format(id=id, cases=cases, when=when)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def migrated(folder: Path, pages: Mapping[str, str]) -> Migration:
    for name, text in pages.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    made = migrate(folder)
    made.write()
    return made


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*"))


def loaded(folder: Path, id: str) -> Rule:
    rules = load_rules((folder,))
    assert rules.failures == load_cases((folder,)).failures == ()
    rule = rules.get(id)
    assert rule is not None
    return rule


def test_rules_become_the_checks_of_their_case(folder: Path) -> None:
    pages = {"cases/trl/toy-case.md": CASE, "rules/a/a-rule.md": rule_text("a-rule", when=LONG)}
    migrated(folder, {**pages, "rules/a/second-rule.md": rule_text("second-rule")})
    assert files(folder) == ["causes/trl/toy-case.md"]
    case = load_cases((folder,)).get("toy-case")
    assert case is not None
    assert case.rules == ("second-rule", "a-rule")
    made = loaded(folder, "a-rule")
    assert (made.when, made.cases, made.symptoms) == (LONG, ("toy-case",), ("loss_nan",))
    assert max(map(len, (folder / "causes/trl/toy-case.md").read_text(encoding="utf-8").split("\n"))) < 120
    fires, silent = examples_of(made)
    assert (fires.sentence, silent.sentence) == ("It is set", "It is not")
    assert fires.attachments[0].content == "## Fires\ntrl sft --packing\n"


def test_a_sentence_that_the_case_says_is_left_out_in_both_languages_and_another_stays(folder: Path) -> None:
    made = migrated(folder, {"toy-case.md": CASE, "a-rule.md": rule_text("a-rule")})
    note = loaded(folder, "a-rule").note
    assert note is not None
    assert note.en == "Only on Mondays.\nOnly 0.3.4 does that.\nLook."
    assert note.zh == "只在周一。\n只有 0.3.4 会。\n看。"
    assert made.dropped == [
        "a-rule\ten\tThe loss of packed rows is broken.", "a-rule\tzh\t打包之后的损失坏掉了。",
    ]  # fmt: skip


def test_a_source_that_the_case_has_is_left_out(folder: Path) -> None:
    migrated(folder, {"toy-case.md": CASE, "a-rule.md": rule_text("a-rule")})
    assert (folder / "toy-case.md").read_text(encoding="utf-8").count("https://example.org/1") == 1
    assert {source.url[-1] for source in loaded(folder, "a-rule").sources} == {"1", "2"}


def test_a_rule_without_a_case_is_a_page_with_one_check(folder: Path) -> None:
    migrated(folder, {"rules/code/a-rule.md": rule_text("a-rule", cases="[]")})
    case = load_cases((folder,)).get("a-rule")
    assert case is not None
    assert (case.family, case.frameworks, case.rules, case.signals) == ("code", ("trl",), ("a-rule",), ("loss_nan",))
    assert case.section("cause", "en") == "seen\n\nOnly 0.3.4 does that."
    assert (loaded(folder, "a-rule").title, loaded(folder, "a-rule").note) == (case.title, None)


def test_further_cases_of_a_rule_say_that_it_detects_them(folder: Path) -> None:
    other = CASE.replace("toy-case", "b-case").replace("[second-rule, a-rule]", "[a-rule]")
    both = rule_text("a-rule", cases="[toy-case, b-case]")
    migrated(folder, {"toy-case.md": CASE, "b-case.md": other, "a-rule.md": both})
    assert loaded(folder, "a-rule").cases == ("toy-case", "b-case")


def test_a_rule_is_added_to_a_page_that_was_rewritten_before_and_its_module_goes_along(folder: Path) -> None:
    migrated(folder, {"cases/toy-case.md": CASE, "rules/a-rule.md": rule_text("a-rule")})
    later = rule_text("later").replace("when: packing\n", "")
    migrated(folder, {"rules/x/later.md": later, "rules/x/later.py": "def check(facts):\n    return None\n"})
    assert files(folder) == ["causes/later.py", "causes/toy-case.md"]
    assert loaded(folder, "later").check is not None
    assert loaded(folder, "a-rule").when == "packing"


def test_pages_that_were_changed_in_the_earlier_format_replace_what_was_made_of_them(folder: Path) -> None:
    pages = {"cases/toy-case.md": CASE, "rules/a-rule.md": rule_text("a-rule"), "rules/b-rule.md": rule_text("b-rule")}
    migrated(folder, pages)
    changed = {"cases/toy-case.md": CASE.replace("Because.", "Therefore.")}
    migrated(folder, {**changed, "rules/a-rule.md": rule_text("a-rule", when="not packing")})
    case = load_cases((folder,)).get("toy-case")
    assert case is not None
    assert (case.section("cause", "en"), sorted(case.rules)) == ("Therefore.", ["a-rule", "b-rule"])
    assert (loaded(folder, "a-rule").when, loaded(folder, "b-rule").when) == ("not packing", "packing")
    assert len(examples_of(loaded(folder, "a-rule"))) == 2


def test_pages_of_the_format_stay_as_they_are(folder: Path) -> None:
    migrated(folder, {"toy-case.md": CASE, "a-rule.md": rule_text("a-rule"), "b-case.md": PAGE})
    assert migrated(folder, {}) == Migration()


@pytest.mark.parametrize(
    ("sentence", "covered"),
    [
        ("Upgrade to 0.9.5 or use ZeRO-3 with float32 weights.", True),
        ("Upgrade to 0.9.6 or use ZeRO-3 with float32 weights.", False),
        ("Upgrade to 0.9.5 or do not use ZeRO-3 with float32 weights.", False),
        ("Upgrade to `0.9.5` or use FSDP.", False),
        ("Weights.", False),
    ],
)
def test_a_sentence_is_restated_by_one_passage_with_all_its_numbers_names_and_words(
    sentence: str, covered: bool
) -> None:
    passages = ("Upgrade to 0.9.5 or later, or use ZeRO-3 over float32 weights.", "FSDP and 0.9.6.")
    assert Restated(passages).covers(sentence, "en") is covered
