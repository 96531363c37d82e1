"""Rule pages: front matter and its mistakes, bodies and their examples, discovery."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.every_case import every_case
from tests.rules.support import WORDS_OF_TESTS, evidence, facts, page, parsed, rule, run, setting
from trainmedic.kb.engine.functions import ALL_FUNCTIONS
from trainmedic.kb.engine.placeholders import compile_template
from trainmedic.kb.engine.values import UNKNOWN
from trainmedic.kb.model.report import Safety
from trainmedic.kb.pages.body import read_body
from trainmedic.kb.pages.case import load_cases
from trainmedic.kb.pages.page import PageError, discover
from trainmedic.kb.pages.rule import RULES, load_rules


def test_a_page_becomes_a_rule() -> None:
    made = rule(
        applies='{framework: [openrlhf], versions: {openrlhf: "<0.3.4"}}',
        fix='[{set: {bf16: true}, unset: vanilla_loss, safety: safe, when: "vanilla_loss"}]',
    )
    assert (made.id, made.family, made.when) == ("a-defect", "kto", "vanilla_loss")
    assert made.applies == {"framework": ("openrlhf",)}
    assert made.versions == {"openrlhf": "<0.3.4"}
    assert (made.fixes[0].safety, made.fixes[0].unset, dict(made.fixes[0].set)) == (
        Safety.SAFE, ("vanilla_loss",), {"bf16": True}
    )  # fmt: skip


@every_case(
    ("text", "line", "message"),
    [
        ("no front matter", 1, "front matter"),
        ("---\n- a\n---\n", 2, "mapping"),
        ("---\nid: [\n---\n", 3, "not YAML"),
        (page().replace("since:", "sinse:"), 6, "unknown field 'sinse'; did you mean 'since'?"),
        (page().replace("severity: error\n", ""), 2, "field 'severity' is missing"),
        (page("other"), 2, "must be the file's name"),
        (page(severity="fatal"), 4, "unknown word 'fatal'; known: error, info, warning"),
        (page(severity="warnnig"), 4, "did you mean 'warning'?"),
        (page(status="done"), 5, "deprecated, preview, stable"),
        (page().replace('zh: "一个缺陷"', 'zh: ""'), 3, "title.zh: must not be empty"),
        (page().replace(', zh: "一个缺陷"', ""), 3, "both languages"),
        (page(when="micro_batc == 1"), 8, "micro_batc"),
        (page(when=""), 1, "either 'when', 'check' or a module"),
        (page(when="").replace("status:", "check: option_check.renamed\nstatus:"), 5, "did you mean 'option_checks'?"),
        (page(when="").replace("status:", "check: option_checks\nstatus:"), 5, "must be MODULE.FUNCTION"),
        (page().replace("status:", "check: option_checks.renamed\nstatus:"), 9, "either 'when', 'check' or a module"),
        (page().replace("when: 'vanilla_loss'", "when: 3"), 8, "must be a condition"),
        (page(message="{micro_batc}"), 9, "micro_batc"),
        (page(message="a } b"), 9, "lone"),
        (page(applies="{model: [x]}"), 7, "unknown field 'model'"),
        (page(applies="{framework: trl}"), 7, "applies.framework: must be a list"),
        (page(applies="{framework: []}"), 7, "must not be an empty list"),
        (page(applies="{versions: [trl]}"), 7, "applies.versions: must be a mapping"),
        (page(applies="{versions: {trl: new}}"), 7, "version range"),
        (page(fix="{}").replace("fix: {}", "fix: 3"), 10, "fix: must be a list"),
        (page(fix="[3]"), 10, "fix: must be a mapping"),
        (page(fix="[{unset: bf16}]"), 10, "field 'safety' is missing"),
        (page(fix="[{set: [bf16], safety: safe}]"), 10, "fix.set: must be a mapping"),
        (page(fix="[{unset: [[1]], safety: safe}]"), 10, "fix.unset: must be a text"),
        (page(fix="[{set: {b16: 1}, safety: safe}]"), 10, "unknown setting 'b16'; did you mean "),
        (page(fix="[{set: {bf16: [1]}, safety: safe}]"), 10, "fix.set.bf16: must be a text"),
        (page(fix="[{safety: display}]"), 10, "one of set, unset"),
        (page(fix='[{upgrade: "x>=1", safety: safe}]'), 10, "safety: display"),
        (page(fix="[{unset: bf16, safety: safe, when: nope}]"), 10, "nope"),
        (page(fix="[{text: {en: a}, safety: display}]"), 10, "both languages"),
        (page().replace("cases: [a-case]", "cases: [[a]]"), 11, "cases: must be a text"),
        (page().replace("says: source", "says: me"), 12, "sources.says: unknown word 'me'"),
        (page().replace("since: 0.1.0", "symptoms: [lossnan]"), 6, "did you mean 'loss_nan'?"),
    ],
)
def test_a_mistake_is_named_with_page_and_line(text: str, line: int, message: str) -> None:
    with pytest.raises(PageError) as caught:
        parsed(text)
    assert message in caught.value.problem.message
    assert str(caught.value).startswith(f"kto/a-defect.md:{line}: ")


def test_a_value_to_set_has_the_type_that_is_written() -> None:
    made = rule(fix='[{set: {bf16: true, micro_batch: 2, learning_rate: 0.1, beta: "2"}, safety: unsafe}]')
    assert dict(made.fixes[0].set) == {"bf16": True, "micro_batch": 2, "learning_rate": 0.1, "beta": "2"}


def test_a_rule_may_hold_always() -> None:
    always = rule(when="vanilla_loss").condition
    assert always is not None
    text = page().replace("when: 'vanilla_loss'", "when: true")
    made = parsed(text)
    assert made.condition is not None
    assert made.condition.evaluate(facts(evidence())) is True
    ranged = text.replace("framework: [openrlhf]", 'versions: {openrlhf: ">1"}')
    only_versions = parsed(ranged).condition
    assert only_versions is not None
    assert only_versions.evaluate(facts(evidence())) is UNKNOWN


def test_a_message_holds_any_expression_and_braces() -> None:
    text = rule(message="a {micro_batch} b {micro_batch * 2} {{c}} {beta}").message
    given = facts(evidence(run(settings={"micro_batch": setting("micro_batch", 4)})))
    assert text.render(given).en == "a 4 b 8 {c} unknown"
    assert text.render(given).zh == "a 4 b 8 {c} 未知"
    assert text.render(given, {"micro_batch": "five"}).en.startswith("a five b 8")


def test_a_module_may_bring_its_own_placeholders() -> None:
    source = rule(message="seen").message.source
    own = compile_template(type(source)(en="{mean_kl}", zh="{mean_kl}"), WORDS_OF_TESTS, own=True)
    assert own.render(facts(evidence()), {"mean_kl": "0.1"}).en == "0.1"


BODY = """## en
### What it finds
One.
```text
## not a heading
```
### Why it matters
Two.
### What to do
Three.
## zh
### 检查什么
一。
### 为什么重要
二。
### 怎么改
三。
## Fires
### The flag is there
```bash train.sh
a
b ⟦--x 1⟧ \\
  ⟦--y
2⟧
```
```text question
it is ⟦nan⟧
```
```diff
-a
+b
```
## Silent
### It is not
```bash
a
```
cannot tell allowed
## Cannot tell
### It may be
````text
```
````
missing: version:trl, setting:bf16
"""


def test_a_body_has_sections_and_examples_with_their_marks() -> None:
    body = read_body(rule(body=BODY))
    assert body.sections["en"]["What it finds"].endswith("```")
    assert tuple(body.sections["zh"]) == ("检查什么", "为什么重要", "怎么改")
    fires, silent, unknown = body.examples
    assert fires.question == "it is nan\n"
    assert fires.attachments[0].content == "a\nb --x 1 \\\n  --y\n2\n"
    assert [(m.attachment, m.line, m.column, m.end_line, m.end_column, m.text) for m in fires.marks] == [
        ("train.sh", 2, 3, 2, 8, "--x 1"),
        ("train.sh", 3, 3, 4, 2, "--y\n2"),
        (None, 1, 7, 1, 10, "nan"),
    ]
    assert fires.diff == "-a\n+b\n"
    assert silent.attachments[0].name == "paste.sh"
    assert silent.may_be_unknown
    assert unknown.missing == ("version:trl", "setting:bf16")
    assert unknown.attachments[0].content == "```\n"
    assert rule(body=BODY).page.text.split("\n")[fires.line - 1] == "### The flag is there"


@every_case(
    ("body", "says"),
    [
        ("## Firse\n", "unknown chapter 'Firse'; did you mean 'Fires'"), ("## en\n### A\nx\n", "unknown section 'A'"),
        ("## en\n### What to do\nx\n### What to do\n", "occurs twice"), ("lost\n", "outside any section"),
        ("## en\nlost\n", "outside any section"), ("## Fires\n### S\n```bash\na\n", "never closed"),
        ("## Fires\n### S\ntext\n", "needs a fenced block"), ("## Fires\n### S\n```bash\n⟦⟦a⟧\n```\n", "inside"),
        ("## Fires\n### S\n```bash\na⟧\n```\n", "without"), ("## Fires\n### S\n```bash\n⟦a\n```\n", "never closed"),
        ("## Fires\n### S\n```bash x\na\n```\n```bash x\nb\n```\n", "two blocks"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_body_is_named(body: str, says: str) -> None:
    with pytest.raises(PageError, match=says):
        read_body(rule(body=body))


def test_a_folder_of_a_team_adds_rules_and_a_bad_page_does_not_stop_the_others(tmp_path: Path) -> None:
    folder = tmp_path / "team"
    folder.mkdir()
    (folder / "README.md").write_text("not a rule")
    (folder / "a-defect.md").write_text(page())
    (folder / "bad-page.md").write_text("x")
    (folder / "not-text.md").write_bytes(b"\xff\xfe\xff")
    (folder / "zz").mkdir()
    (folder / "zz" / "a-defect.md").write_text(page())
    loaded = load_rules((folder, tmp_path / "absent"))
    assert loaded.get("a-defect") is not None
    assert loaded.get("no-such-rule") is None
    failed = {failure.page: failure.message for failure in loaded.failures}
    assert "is taken by team/a-defect.md" in failed["team/zz/a-defect.md"]
    assert "front matter" in failed["team/bad-page.md"]
    assert set(failed) == {"team/zz/a-defect.md", "team/bad-page.md", "team/not-text.md", str(tmp_path / "absent")}
    assert loaded.version != load_rules().version


def test_the_version_changes_with_a_rules_module(tmp_path: Path) -> None:
    (tmp_path / "a-defect.md").write_text(page(when=""))
    module = tmp_path / "a-defect.py"
    module.write_text(
        "from trainmedic.kb.engine.outcome import Outcome\ndef check(facts):\n    return Outcome(value=True)\n"
    )
    first = load_rules((tmp_path,))
    assert first.get("a-defect") is not None
    module.write_text("def check(facts):\n    return None\n")
    assert load_rules((tmp_path,)).version != first.version


def test_a_page_may_name_a_shared_check(tmp_path: Path) -> None:
    (tmp_path / "a-defect.md").write_text(page(when="").replace("status:", "check: option_checks.renamed\nstatus:"))
    rule = load_rules((tmp_path,)).get("a-defect")
    assert rule is not None
    assert rule.check is not None
    assert rule.check(facts(evidence())).value is False


def test_rules_are_indexed_by_framework_and_deprecated_ones_never_run(tmp_path: Path) -> None:
    for name, applies, status in (
        ("any-run", "{}", "stable"),
        ("of-trl", "{framework: [trl]}", "preview"),
        ("old-one", "{}", "deprecated"),
    ):
        (tmp_path / f"{name}.md").write_text(page(name, applies=applies, status=status))
    loaded = load_rules((tmp_path,))
    mine = {"any-run", "of-trl", "old-one"}
    assert [each.id for each in loaded.for_framework("trl") if each.id in mine] == ["any-run", "of-trl"]
    assert [each.id for each in loaded.for_framework(None) if each.id in mine] == ["any-run"]


def test_built_in_pages_are_found_without_a_registry() -> None:
    found = [path.stem for path, _ in discover(RULES.folder)]
    assert len(found) == len(set(found)) == len(load_rules().rules)
    assert load_rules().failures == ()


def test_a_folder_may_hold_rules_and_cases(tmp_path: Path) -> None:
    (tmp_path / "a-defect.md").write_text(page())
    (tmp_path / "a-case.md").write_text("---\nid: a-case\nevidence: reported\n---\n")
    assert load_rules((tmp_path,)).failures == ()
    assert [problem.stem for problem in load_cases((tmp_path,)).failures] == ["a-case"]


def test_the_readme_names_every_function() -> None:
    text = (RULES.folder / "README.md").read_text()
    assert [name for name in ALL_FUNCTIONS if name not in text] == []


@pytest.fixture
def not_compiled(tmp_path: Path) -> Path:
    """The built-in rules in a place where what they were read into is not kept."""
    (tmp_path / "rules").symlink_to(RULES.folder)
    return tmp_path


def test_pages_of_other_frameworks_can_be_left_out_without_a_change_of_the_version(not_compiled: Path) -> None:
    whole, some = load_rules(), load_rules(frameworks={"axolotl"}, builtin=not_compiled)
    assert some.version == whole.version
    assert [rule.id for rule in some.for_framework("axolotl")] == [rule.id for rule in whole.for_framework("axolotl")]
    assert 0 < len(some.rules) < len(whole.rules)


def test_a_paste_of_no_framework_gets_the_rules_that_look_at_every_run(not_compiled: Path) -> None:
    some, whole = load_rules(frameworks={None}, builtin=not_compiled), load_rules()
    assert [rule.id for rule in some.for_framework(None)] == [rule.id for rule in whole.for_framework(None)]


def test_pages_of_ones_own_are_always_read(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "a-broken-page.md").write_text("no front matter", encoding="utf-8")
    assert [failure.stem for failure in load_rules((tmp_path,), frameworks={"trl"}).failures] == ["a-broken-page"]
