"""Pages of causes load, and a broken one says where it is broken while the others still load."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.every_case import every_case
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.page import PageProblem
from trainmedic.kb.pages.case import CaseSet, load_cases, read_case
from trainmedic.kb.pages.page import PageError, read_page
from trainmedic.kb.pages.render import render_case

PAGE = """---
id: toy-case
title: {en: "Toy", zh: "玩具"}
kind: fault
family: data
frameworks: [trl]
symptoms: {en: [a, b, c, d], zh: [甲, 乙, 丙, 丁]}
affected: {trl: ">=1.0,<2.0"}
fixed: {trl: "2.0"}
effect: silent
evidence: reporter
reviewed: 2026-11-21
no_rule: "it cannot be seen"
sources: [{url: "https://example.org/1", says: reporter, note: "seen there"}]
refutations:
  - {claim: {en: "Lower it.", zh: "降低它。"}, why: {en: "No effect.", zh: "没有作用。"}}
ask:
  - {fact: log, ask: {en: "The log?", zh: "日志呢？"}, why: {en: "It shows.", zh: "能看出来。"}}
related: [other-case]
---
## en
### Symptom
It is broken.
### Cause
Because.
### Fix
```bash
### not a heading
```
### How to confirm
Look.

## zh
### 现象
坏了。
### 原因
因为。
### 修复
改。
### 如何确认
看。
"""


def case(text: str = PAGE) -> Case:
    return read_case(Path("toy-case.md"), *read_page(text, "toy-case.md"))[0]


def failure(text: str) -> PageProblem:
    with pytest.raises(PageError) as caught:
        case(text)
    return caught.value.problem


def test_a_page_becomes_a_case() -> None:
    toy = case()
    assert toy.title.zh == "玩具"
    assert toy.affected == {"trl": ">=1.0,<2.0"}
    assert toy.symptoms["zh"] == ("甲", "乙", "丙", "丁")
    assert toy.sources[0].says == "reporter"
    assert toy.refutations[0].why.en == "No effect."
    assert toy.ask[0].fact == "log"
    assert toy.status == "published"


def test_what_is_said_in_one_language_is_shown_in_both() -> None:
    text = PAGE.replace('{en: "Toy", zh: "玩具"}', '{en: "Toy"}').partition("\n## zh")[0] + "\n"
    toy = case(text)
    assert toy.languages == ("en",)
    assert (toy.title.zh, toy.section("cause", "zh")) == ("Toy", "Because.")
    assert "Because." in render_case(toy, "zh")


def test_the_messages_of_its_checks_begin_the_cause_of_a_page_without_symptoms() -> None:
    made = case(
        "---\nid: toy-case\ntitle: {en: Toy}\nfamily: code\nsources: []\nchecks:\n  - id: a-check\n"
        "    applies: {framework: [trl]}\n    message: {en: Seen here.}\n---\n"
        "## en\n### Cause\nBecause.\n## Check a-check\n"
    )
    assert made.section("cause", "en") == "Seen here.\n\nBecause."
    assert (made.frameworks, made.rules, made.kind) == (("trl",), ("a-check",), "fault")


def test_headings_of_both_languages_name_the_same_sections() -> None:
    toy = case()
    assert toy.section("symptom", "en") == "It is broken."
    assert toy.section("symptom", "zh") == "坏了。"
    assert toy.section("confirm", "de") == "Look."


def test_a_heading_inside_a_fence_is_text() -> None:
    assert "### not a heading" in case().section("fix", "en")


def test_scalars_stay_the_text_that_was_written() -> None:
    assert case().reviewed == "2026-11-21"
    assert case(PAGE.replace("[trl]", "[no]")).frameworks == ("no",)


def test_the_reader_of_a_review_is_named() -> None:
    assert case().reviewed_by == "author"
    second = case(PAGE.replace("reviewed: 2026-11-21", 'reviewed: "2026-11-21, second reader"'))
    assert (second.reviewed, second.reviewed_by) == ("2026-11-21", "second reader")
    assert "reviewed 2026-11-21 by a second reader." in render_case(second)


def test_windows_line_ends_change_nothing() -> None:
    assert case(PAGE.replace("\n", "\r\n")) == case()


@every_case(
    ("old", "new", "line", "message"),
    [
        ("---\nid", "id", 1, "front matter"),
        ("kind: fault", "kind: [fault", 5, "not YAML"),
        ("family: data\n", "", 2, "field 'family' is missing"),
        ("kind: fault", "kind: fault\ncolour: red", 5, "unknown field 'colour'"),
        ("kind: fault", "kind: fault\nkind: fault", 5, "'kind' occurs twice"),
        ("id: toy-case", "id: other", 2, "must be the file's name"),
        ('{en: "Toy", zh: "玩具"}', "Toy", 3, "must be a mapping"),
        ('{en: "Toy", zh: "玩具"}', '{fr: "Toy"}', 3, "in one language or both"),
        ("frameworks: [trl]", "frameworks: trl", 6, "must be a list"),
        ("frameworks: [trl]", 'frameworks: [""]', 6, "must not be empty"),
        ('affected: {trl: ">=1.0,<2.0"}', "affected: [trl]", 8, "must be a mapping"),
        ("[a, b, c, d], zh: [甲, 乙, 丙, 丁]", "[a], fr: [b]", 7, "unknown field 'fr'"),
        ("says: reporter, ", "", 14, "field 'says' is missing"),
        ('why: {en: "No effect.", zh: "没有作用。"}', "because: x", 16, "unknown field 'because'"),
        ("reviewed: 2026-11-21", "reviewed: 2026-11-21, a friend", 12, "unknown reader 'a friend'"),
        ("### Cause", "### Reason", 24, "unknown section 'Reason'"),
        ("### Cause", "### Symptom", 24, "occurs twice"),
        ("## zh", "## fr", 33, "unknown chapter 'fr'; known: en, zh"),
        ("## en\n", "## en\nloose text\n", 21, "text outside any section"),
        ("看。\n", "看。\n## Check a-check\n", 42, "no check is called 'a-check'"),
    ],
)
def test_a_broken_page_says_where_and_what(old: str, new: str, line: int, message: str) -> None:
    assert old in PAGE
    broken = failure(PAGE.replace(old, new, 1))
    assert message in broken.message
    assert broken.line == line


def test_a_team_adds_a_folder_of_its_own_and_a_broken_page_does_not_hide_the_rest(tmp_path: Path) -> None:
    (tmp_path / "team").mkdir()
    (tmp_path / "team" / "toy-case.md").write_text(PAGE, encoding="utf-8")
    (tmp_path / "broken.md").write_text("nothing", encoding="utf-8")
    (tmp_path / "bytes.md").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "README.md").write_text("not a page", encoding="utf-8")
    loaded = load_cases([tmp_path])
    assert loaded.get("toy-case") is not None
    assert [item.stem for item in loaded.failures] == ["broken", "bytes"]
    assert len(loaded.cases) == len(load_cases().cases) + 1


def test_an_id_that_exists_already_is_a_failure_of_the_later_page(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for folder in (first, second):
        folder.mkdir()
        (folder / "toy-case.md").write_text(PAGE, encoding="utf-8")
    loaded = load_cases([first, second])
    assert [str(item) for item in loaded.failures] == ["b/toy-case.md:2: id 'toy-case' is taken by a/toy-case.md"]


def test_a_single_page_can_be_given(tmp_path: Path) -> None:
    page = tmp_path / "toy-case.md"
    page.write_text(PAGE, encoding="utf-8")
    assert load_cases([page]).get("toy-case") == case()


def test_drafts_are_loaded_but_not_published(tmp_path: Path) -> None:
    (tmp_path / "toy-case.md").write_text(PAGE.replace("kind: fault", "kind: fault\nstatus: draft"), encoding="utf-8")
    loaded = load_cases([tmp_path])
    toy = loaded.get("toy-case")
    assert toy is not None
    assert toy.status == "draft"
    assert toy not in loaded.published


def test_cases_come_in_the_order_of_their_ids_and_the_version_follows_the_text(tmp_path: Path) -> None:
    page = tmp_path / "toy-case.md"
    page.write_text(PAGE, encoding="utf-8")
    before = load_cases([tmp_path])
    assert [item.id for item in before.cases] == sorted(item.id for item in before.cases)
    page.write_text(PAGE.replace("Because.", "Therefore."), encoding="utf-8")
    assert load_cases([tmp_path]).version != before.version
    assert load_cases().version == load_cases().version


def test_an_unknown_id_gives_nothing() -> None:
    assert CaseSet().get("nothing") is None


def test_a_rendered_case_holds_everything_in_one_language() -> None:
    text = render_case(case(), "zh")
    for part in (
        "# 玩具",
        "## 现象",
        "## 哪些办法没有用",
        "**降低它。** 没有作用。",
        "<https://example.org/1> (报告者)",
        "受影响 `>=1.0,<2.0`",
    ):
        assert part in text
    assert "Lower it." not in text
    assert "it cannot be seen" not in text


def test_a_rendered_case_says_how_sure_it_is_and_what_to_look_at_next() -> None:
    text = render_case(case(), "en")
    for part in (
        "stated by the reporter",
        "No rule detects this: it cannot be seen",
        "`other-case`",
        "fixed in `2.0`",
        "The log?",
    ):
        assert part in text


def test_a_rendered_artefact_says_that_nothing_is_wrong() -> None:
    text = render_case(
        case(PAGE.replace("kind: fault", "kind: artefact").replace('no_rule: "it cannot be seen"', "detected_by: [r]"))
    )
    assert "Nothing is wrong with the run" in text
    assert "Detected by: `r`" in text


def test_a_case_without_versions_rule_or_relatives_renders_without_their_lines() -> None:
    lines = [
        line
        for line in PAGE.splitlines(keepends=True)
        if not line.startswith(("affected", "fixed", "effect", "related", "no_rule"))
    ]
    text = render_case(case("".join(lines)))
    assert "Versions" not in text
    assert "Related" not in text
    assert "Detected" not in text


def test_a_section_after_a_closed_fence_is_a_section_again() -> None:
    toy = case(PAGE.replace("Because.", "~~~\n### inside\n```\n~~~\nBecause."))
    assert toy.section("cause", "en").endswith("Because.")
    assert toy.section("fix", "en").startswith("```bash")


def test_front_matter_with_a_control_character_is_a_failure() -> None:
    assert "not YAML" in failure(PAGE.replace("kind: fault", "kind: fa\x00ult")).message
