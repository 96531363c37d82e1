"""The checks of pages: their fields and mistakes, their examples, discovery."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.every_case import every_case
from tests.rules.support import WORDS_OF_TESTS, evidence, facts, page, parsed, rule, run, setting
from trainmedic.kb.engine.functions import ALL_FUNCTIONS
from trainmedic.kb.engine.placeholders import compile_template
from trainmedic.kb.engine.values import UNKNOWN
from trainmedic.kb.model.report import Safety
from trainmedic.kb.pages.case import CAUSES, load_cases
from trainmedic.kb.pages.examples import examples_of
from trainmedic.kb.pages.page import PageError
from trainmedic.kb.pages.rule import load_rules


def test_a_check_becomes_a_rule() -> None:
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


def checked(function: str) -> str:
    return page(when="").replace("status:", f"check: {function}\n    status:")


@every_case(
    ("text", "line", "message"),
    [
        ("no front matter", 1, "front matter"),
        ("---\n- a\n---\n", 2, "mapping"),
        ("---\nid: [\n---\n", 3, "not YAML"),
        (page().replace("since:", "sinse:"), 10, "unknown field 'sinse'; did you mean 'since'?"),
        (page().replace("severity: error", "since: 0.1.0").replace("\n    since: 0.1.0", "", 1), 7, "is missing"),
        (page("other"), 2, "must be the file's name"),
        (page().replace("  - id: a-defect", "  - id: A defect"), 7, "lower-case words"),
        (page(severity="fatal"), 8, "unknown word 'fatal'; known: error, info, warning"),
        (page(severity="warnnig"), 8, "did you mean 'warning'?"),
        (page(status="done"), 9, "deprecated, preview, stable"),
        (page().replace('zh: "seen"', 'zh: ""'), 13, "message.zh: must not be empty"),
        (page().replace('{en: "seen", zh: "seen"}', "{}"), 13, "in one language or both"),
        (page(when="micro_batc == 1"), 12, "micro_batc"),
        (page(when=""), 7, "either 'when' or 'check'"),
        (
            page(when="").replace("status:", "check: option_check.renamed\n    status:"),
            9,
            "did you mean 'option_checks'?",
        ),
        (checked("option_checks"), 9, "must be MODULE.FUNCTION"),
        (page().replace("status:", "check: option_checks.renamed\n    status:"), 7, "either 'when' or 'check'"),
        (page().replace("when: 'vanilla_loss'", "when: 3"), 12, "must be a condition"),
        (page(message="{micro_batc}"), 13, "micro_batc"),
        (page(message="a } b"), 13, "lone"),
        (page(applies="{model: [x]}"), 11, "unknown field 'model'"),
        (page(applies="{framework: trl}"), 11, "applies.framework: must be a list"),
        (page(applies="{framework: []}"), 11, "must not be an empty list"),
        (page(applies="{versions: [trl]}"), 11, "applies.versions: must be a mapping"),
        (page(applies="{versions: {trl: new}}"), 11, "version range"),
        (page(fix="{}").replace("fix: {}", "fix: 3"), 14, "fix: must be a list"),
        (page(fix="[3]"), 14, "fix: must be a mapping"),
        (page(fix="[{unset: bf16}]"), 14, "field 'safety' is missing"),
        (page(fix="[{set: [bf16], safety: safe}]"), 14, "fix.set: must be a mapping"),
        (page(fix="[{unset: [[1]], safety: safe}]"), 14, "fix.unset: must be a text"),
        (page(fix="[{set: {b16: 1}, safety: safe}]"), 14, "unknown setting 'b16'; did you mean "),
        (page(fix="[{set: {bf16: [1]}, safety: safe}]"), 14, "fix.set.bf16: must be a text"),
        (page(fix="[{safety: display}]"), 14, "one of set, unset"),
        (page(fix='[{upgrade: "x>=1", safety: safe}]'), 14, "safety: display"),
        (page(fix="[{unset: bf16, safety: safe, when: nope}]"), 14, "nope"),
        (page().replace("says: source", "says: me"), 5, "sources.says: unknown word 'me'"),
        (page().replace("since: 0.1.0", "symptoms: [lossnan]"), 10, "did you mean 'loss_nan'?"),
        (page(body="## Check a-defect\n## Check a-defect\n"), 17, "two chapters for the check 'a-defect'"),
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
### Cause
One.
## Check a-defect
### Fires: the flag is there
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
### Silent: it is not
```bash
a
```
cannot tell allowed
### Cannot tell: it may be
````text
```
````
missing: version:trl, setting:bf16
"""


def test_a_chapter_has_examples_with_their_marks() -> None:
    fires, silent, unknown = examples_of(rule(body=BODY))
    assert (fires.kind, fires.sentence) == ("Fires", "the flag is there")
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
    assert page(body=BODY).split("\n")[fires.line - 1] == "### Fires: the flag is there"


@every_case(
    ("body", "says"),
    [
        ("### Firse: S\n", "'Firse: S' must begin with"), ("lost\n", "outside any section"),
        ("### Fires: S\n```bash\na\n", "never closed"), ("### Fires: S\ntext\n", "needs a fenced block"),
        ("### Fires: S\n```bash\n⟦⟦a⟧\n```\n", "inside"), ("### Fires: S\n```bash\na⟧\n```\n", "without"),
        ("### Fires: S\n```bash\n⟦a\n```\n", "never closed"), ("## zh\n", "unknown chapter 'zh'"),
        ("### Fires: S\n```bash x\na\n```\n```bash x\nb\n```\n", "two blocks"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_chapter_is_named(body: str, says: str) -> None:
    with pytest.raises(PageError, match=says):
        examples_of(rule(body=f"## Check a-defect\n{body}"))


def test_a_check_has_what_its_page_has_unless_it_says_otherwise() -> None:
    shared = page().replace("family: data", "family: data\nsignals: [oom]")
    assert (parsed(shared).symptoms, parsed(shared).title.en) == (("oom",), "A defect")
    own = shared.replace(
        "since: 0.1.0",
        "symptoms: [loss_nan]\n    title: {en: Own}\n    sources: [{url: 'https://example.org/2', says: docs}]",
    )
    assert (parsed(own).symptoms, parsed(own).title.zh) == (("loss_nan",), "Own")
    assert [source.url[-1] for source in parsed(own).sources] == ["2", "1"]


def test_a_check_names_the_causes_that_say_they_are_found_by_it(tmp_path: Path) -> None:
    (tmp_path / "a-defect.md").write_text(page())
    other = page("b-defect").split("checks:")[0] + "detected_by: [a-defect]\n---\n"
    (tmp_path / "b-defect.md").write_text(other)
    rule, case = load_rules((tmp_path,)).get("a-defect"), load_cases((tmp_path,)).get("b-defect")
    assert rule is not None
    assert case is not None
    assert (rule.cases, case.rules) == (("a-defect", "b-defect"), ("a-defect",))


def test_two_pages_cannot_have_a_check_of_the_same_id(tmp_path: Path) -> None:
    (tmp_path / "a-defect.md").write_text(page())
    (tmp_path / "b-defect.md").write_text(page("b-defect").replace("  - id: b-defect", "  - id: a-defect"))
    (failure,) = load_rules((tmp_path,)).failures
    assert (failure.stem, failure.line) == ("b-defect", 7)
    assert failure.message.startswith("id 'a-defect' is taken by ")


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


def test_a_check_of_a_team_is_a_function_beside_the_page_and_part_of_the_version(tmp_path: Path) -> None:
    (tmp_path / "a-defect.md").write_text(checked("own.found"))
    module = tmp_path / "own.py"
    module.write_text(
        "from trainmedic.kb.engine.outcome import Outcome\ndef found(facts):\n    return Outcome(value=True)\n"
    )
    first = load_rules((tmp_path,))
    rule = first.get("a-defect")
    assert rule is not None
    assert rule.check is not None
    assert rule.check(facts(evidence())).value is True
    module.write_text("def check(facts):\n    return None\n")
    assert load_rules((tmp_path,)).version != first.version


def test_a_page_may_name_a_shared_check(tmp_path: Path) -> None:
    (tmp_path / "a-defect.md").write_text(checked("option_checks.renamed"))
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


def test_the_readme_names_every_function() -> None:
    text = (CAUSES / "README.md").read_text()
    assert [name for name in ALL_FUNCTIONS if name not in text] == []


@pytest.fixture
def not_compiled(tmp_path: Path) -> Path:
    """The built-in rules in a place where what they were read into is not kept."""
    (tmp_path / "causes").symlink_to(CAUSES)
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
