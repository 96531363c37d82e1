"""Fixes in the user's own text: each format, whole lines, continuations, commas; patches and the second check."""

from __future__ import annotations

import ast
import json
import shlex
import time
from dataclasses import replace
from itertools import combinations

import pytest
import yaml

from tests.every_case import every_case
from tests.rules.support import evidence, option, rule, ruleset, run, setting, span
from tests.shipped import shipped_rules
from trainmedic.kb.engine import patches
from trainmedic.kb.engine.checker import check
from trainmedic.kb.engine.edits import (
    Document,
    apply,
    insert,
    quoted,
    remove,
    render,
    replace_option,
    replace_value,
    resolve,
)
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.fixes import fixes
from trainmedic.kb.engine.patches import patched, safe_edits, unified_diff, with_patches
from trainmedic.kb.engine.rule import FixSpec, RuleSet
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Attachment, Source
from trainmedic.kb.model.report import Edit, Finding, Safety, Status
from trainmedic.kb.model.run import Option, Origin
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.answer.views import in_words


def source(text: str, name: str | None = "train.sh") -> Source:
    return Source(name=name, text=text, byte_count=len(text))


def without(text: str, *options: Option) -> str:
    edits = remove(Document(source(text)), options)
    assert edits is not None
    assert not resolve(edits)[1]
    return apply(edits, text)


COMMAND = """export X=1
deepspeed --module openrlhf.cli.train_kto \\
   --pretrain Qwen/Qwen2-7B \\
   --vanilla_loss \\
   --beta 0.1 --bf16 \\
   --micro_train_batch_size 1
echo done
"""
FLAGS = {
    "pretrain": option(COMMAND, "--pretrain Qwen/Qwen2-7B", "pretrain", "Qwen/Qwen2-7B", raw="Qwen/Qwen2-7B"),
    "vanilla": option(COMMAND, "--vanilla_loss", "vanilla_loss"),
    "beta": option(COMMAND, "--beta 0.1", "beta", 0.1, raw="0.1"),
    "bf16": option(COMMAND, "--bf16", "bf16"),
    "micro": option(COMMAND, "--micro_train_batch_size 1", "micro_train_batch_size", 1, raw="1"),
}
WORDS = {
    "pretrain": ["--pretrain", "Qwen/Qwen2-7B"],
    "vanilla": ["--vanilla_loss"],
    "beta": ["--beta", "0.1"],
    "bf16": ["--bf16"],
    "micro": ["--micro_train_batch_size", "1"],
}


def commands(text: str) -> list[list[str]]:
    """The commands of a script as a shell reads them."""
    joined = text.replace("\\\n", " ")
    assert "\\" not in joined
    return [shlex.split(line) for line in joined.splitlines() if line.strip()]


@every_case("names", [each for n in range(1, 6) for each in combinations(FLAGS, n)])
def test_any_flags_taken_out_leave_the_other_words_and_a_valid_command(names: tuple[str, ...]) -> None:
    left = without(COMMAND, *(FLAGS[name] for name in names))
    kept = [word for name in FLAGS if name not in names for word in WORDS[name]]
    expected = [["export", "X=1"], ["deepspeed", "--module", "openrlhf.cli.train_kto", *kept], ["echo", "done"]]
    assert commands(left) == expected
    assert "\n\n" not in left


def test_a_flag_on_a_line_of_its_own_goes_with_its_line() -> None:
    assert without(COMMAND, FLAGS["vanilla"]) == COMMAND.replace("   --vanilla_loss \\\n", "")


def test_the_last_flag_takes_the_continuation_before_it_along() -> None:
    assert "--beta 0.1 --bf16\necho done" in without(COMMAND, FLAGS["micro"])


@every_case(
    ("text", "words", "left"),
    [
        ("train --a 1 --b 2", "--b 2", "train --a 1"), ("train --a 1 --b 2", "--a 1", "train --b 2"),
        ("--a 1", "--a 1", ""), ("A=1 train --b 2", "A=1", "train --b 2"),
        ("export A=1\ntrain", "export A=1", "train"), ("export A=1\ntrain", "A=1", "train"),
        ("x\nexport A=1", "A=1", "x"), ("ARGS=(\n  --a 1\n  --b 2\n)", "--b 2", "ARGS=(\n  --a 1\n)"),
    ],
)  # fmt: skip
def test_words_of_one_line_go_with_the_blank_beside_them(text: str, words: str, left: str) -> None:
    origin = Origin.ENV if words.endswith("A=1") else Origin.FLAG
    assert without(text, option(text, words, "a", 1, raw=words[-1], origin=origin)) == left


YAML = "# mine\nmodel:\n  name: x  # here\nlr: 1e-6\ntargets:\n  - a\n  - b\nbf16: true\n"


@every_case(
    ("words", "gone"),
    [
        ("lr: 1e-6", "lr: 1e-6\n"),
        ("name: x", "  name: x  # here\n"),
        ("targets:\n  - a\n  - b", "targets:\n  - a\n  - b\n"),
    ],
)
def test_a_yaml_option_goes_with_its_lines_and_nothing_else(words: str, gone: str) -> None:
    raw = words.split(":", 1)[1].strip()
    assert without(YAML, option(YAML, words, "k", raw, raw=raw, origin=Origin.YAML)) == YAML.replace(gone, "")


def test_the_last_line_goes_without_leaving_an_empty_one() -> None:
    text = "a: 1\nb: 2"
    assert without(text, option(text, "b: 2", "b", 2, raw="2", origin=Origin.YAML)) == "a: 1"


@every_case(
    ("text", "words", "left"),
    [
        ('{"a": 1, "b": 2}', '"a": 1', '{"b": 2}'), ('{"a": 1, "b": 2}', '"b": 2', '{"a": 1}'),
        ('{"a": 1}', '"a": 1', "{}"), ('{\n  "a": 1,\n  "b": 2\n}', '"a": 1', '{\n  "b": 2\n}'),
        ('{\n  "a": 1,\n  "b": 2\n}', '"b": 2', '{\n  "a": 1\n}'), ('{\n  "a": 1\n}', '"a": 1', "{\n}"),
    ],
)  # fmt: skip
def test_a_json_entry_goes_with_one_comma(text: str, words: str, left: str) -> None:
    found = without(text, option(text, words, "a", 1, raw=words[-1], origin=Origin.JSON))
    assert found == left
    json.loads(found)


def test_a_python_argument_goes_with_its_comma_and_comment() -> None:
    text = "f(\n    a=1,  # why\n    b=2,\n)\n"
    left = without(text, option(text, "a=1", "a", 1, raw="1", origin=Origin.PYTHON))
    assert left == "f(\n    b=2,\n)\n"
    ast.parse(left)


def test_a_flow_mapping_in_yaml_keeps_its_commas() -> None:
    text = "x: {a: 1, b: 2}\n"
    left = without(text, option(text, "a: 1", "x.a", 1, raw="1", origin=Origin.YAML))
    assert yaml.safe_load(left) == {"x": {"b": 2}}


def test_what_does_not_stand_where_its_span_says_is_left_alone() -> None:
    text = "train --a 1"
    moved = option(text, "--a 1", "a", 1, raw="1")
    assert remove(Document(source("train --b 1")), [moved]) is None
    assert remove(Document(source("")), [moved]) is None
    assert remove(Document(source("t")), [moved]) is None
    assert remove(Document(source(text)), [replace(moved, origin=Origin.DUMP)]) is None
    assert replace_value(Document(source("x")), moved, "2") is None
    assert replace_option(Document(source("x")), moved, "k", "2") is None
    assert insert(Document(source("x")), moved, "k", "2") is None
    printed = replace(moved, origin=Origin.DUMP)
    assert replace_value(Document(source(text)), printed, "2") is None
    assert insert(Document(source(text)), printed, "k", "2") is None
    assert Document(source(text)).range(replace(span(text, "--a"), default=True)) is None
    assert Document(source(text)).offset(1, 99) is None
    assert Document(source(text)).offset(7, 1) is None
    assert apply([edit("train --b 1", "--b", "--c")], text) == text


@every_case(
    ("text", "words", "raw", "origin", "value", "left"),
    [
        ("t --a 1 --b", "--a 1", "1", Origin.FLAG, "2", "t --a 2 --b"),
        ("t --a=1", "--a=1", "1", Origin.FLAG, "2", "t --a=2"),
        ("t --a 'x y'", "--a 'x y'", "x y", Origin.FLAG, "z", "t --a z"),
        ("t --a 1", "--a 1", "1", Origin.FLAG, None, "t --a"),
        ("t --a", "--a", None, Origin.FLAG, "no way", "t --a 'no way'"),
        ("t a.b=1", "a.b=1", "1", Origin.HYDRA, "2", "t a.b=2"),
        ("a: 1  # c", "a: 1", "1", Origin.YAML, "2", "a: 2  # c"),
        ("a: 1", "a: 1", "1", Origin.YAML, "yes: no", 'a: "yes: no"'),
        ("a: 1", "a: 1", "1", Origin.YAML, None, "a: true"),
        ('{"a": "x"}', '"a": "x"', "x", Origin.JSON, '"y"', '{"a": "y"}'),
        ("f(a=1)", "a=1", "1", Origin.PYTHON, "2", "f(a=2)"),
    ],
)
def test_a_value_is_replaced_in_place(
    text: str, words: str, raw: str | None, origin: Origin, value: str | None, left: str
) -> None:
    edit = replace_value(Document(source(text)), option(text, words, "a", 1, raw=raw, origin=origin), value)
    assert edit is not None
    assert apply([edit], text) == left


def test_a_bare_key_of_a_file_cannot_be_given_a_value_in_place() -> None:
    assert replace_value(Document(source("a:")), option("a:", "a:", "a", None, origin=Origin.YAML), "1") is None


@every_case(
    ("text", "words", "origin", "key", "raw", "left"),
    [
        ("t --a 1", "--a 1", Origin.FLAG, "b", "2", "t --a 1 --b 2"),
        ("t --a=1", "--a=1", Origin.FLAG, "b", "2", "t --a=1 --b=2"),
        ("t --a 1", "--a 1", Origin.FLAG, "b", None, "t --a 1 --b"),
        ("t \\\n  --a 1\ne", "--a 1", Origin.FLAG, "b", "2", "t \\\n  --a 1 \\\n  --b 2\ne"),
        ("t \\\n  --a 1 \\\n  f", "--a 1", Origin.FLAG, "b", "2", "t \\\n  --a 1 \\\n  --b 2 \\\n  f"),
        ("A=(\n  --a 1\n)", "--a 1", Origin.FLAG, "b", "2", "A=(\n  --a 1\n  --b 2\n)"),
        ("t a=1", "a=1", Origin.HYDRA, "+b.c", "2", "t a=1 +b.c=2"),
        ("a: 1  # c\n", "a: 1", Origin.YAML, "b", "x y", "a: 1  # c\nb: x y\n"),
        ("a: 1", "a: 1", Origin.YAML, "b", None, "a: 1\nb: true"),
        ("{a: 1}", "a: 1", Origin.YAML, "b", "2", "{a: 1, b: 2}"),
        ('{"a": 1}', '"a": 1', Origin.JSON, "b", "true", '{"a": 1, "b": true}'),
        ('{\n  "a": 1\n}', '"a": 1', Origin.JSON, "b", '"x"', '{\n  "a": 1,\n  "b": "x"\n}'),
        ("f(a=1)", "a=1", Origin.PYTHON, "b", "True", "f(a=1, b=True)"),
        ("f(\n    a=1,\n)", "a=1", Origin.PYTHON, "b", None, "f(\n    a=1,\n    b=True,\n)"),
        ('d = {"a": 1}', '"a": 1', Origin.PYTHON, "b", "2", 'd = {"a": 1, "b": 2}'),
        ("a = 1\n", "a = 1", Origin.TOML, "b", "2", "a = 1\nb = 2\n"),
    ],
)
def test_an_option_is_added_behind_the_last_one(
    text: str, words: str, origin: Origin, key: str, raw: str | None, left: str
) -> None:
    edit = insert(Document(source(text)), option(text, words, "a", 1, raw="1", origin=origin), key, raw)
    assert edit is not None
    assert apply([edit], text) == left


@every_case("origin", [Origin.YAML, Origin.JSON, Origin.TOML, Origin.DUMP])
def test_a_nested_key_is_not_written_where_it_would_not_nest(origin: Origin) -> None:
    assert render(origin, "a.b", "1") is None


def test_values_are_quoted_as_their_format_needs() -> None:
    assert quoted("it's", Origin.FLAG) == "'it'\\''s'"
    assert quoted('a "b"', Origin.YAML) == '"a \\"b\\""'
    assert quoted("x", Origin.JSON) == "x"


def edit(text: str, words: str, replacement: str, name: str | None = None) -> Edit:
    return Edit(span=span(text, words, name), replacement=replacement)


def test_of_two_edits_that_meet_the_first_one_wins() -> None:
    text = "abcdef"
    one, two, far = edit(text, "bc", "X"), edit(text, "cd", "Y"), edit(text, "f", "Z")
    elsewhere = edit(text, "bc", "W", "other")
    kept, dropped = resolve([one, two, far, one, elsewhere])
    assert (set(kept), dropped) == ({one, far, elsewhere}, (two,))
    assert apply([one, far], text) == "aXdeZ"
    here = Edit(span=replace(span(text, "c"), end_column=3, text=""), replacement="1")
    assert resolve([here, replace(here, replacement="2")])[1] == (replace(here, replacement="2"),)


def test_a_patch_names_the_file_and_shows_a_missing_line_end() -> None:
    diff = unified_diff("a\nb", "a\nc", "x.sh")
    assert diff.startswith("--- a/x.sh\n+++ b/x.sh\n@@")
    assert diff.count("\\ No newline at end of file") == 2
    assert unified_diff("a", "a", None) == ""
    assert "a/question" in unified_diff("a\n", "b\n", None)


def one_fix(text: str, fix: str, when: str = "True", name: str = "train.sh") -> tuple[Finding, Evidence, RuleSet]:
    given = parse("", (Attachment(name=name, content=text),))
    rules = ruleset(rule(when=when, applies="{}", fix=f"[{fix}]"))
    report = with_patches(check(given, rules), given, rules, lambda q, a: parse(q, a))
    return report.fired[0], given, rules


SCRIPT = """deepspeed --module openrlhf.cli.train_kto \\
   --pretrain Qwen/Qwen2-7B \\
   --vanilla_loss \\
   --micro_train_batch_size 1
"""
LF = "model_name_or_path: Qwen/Qwen2-7B\nstage: kto\ndo_train: true\nfinetuning_type: full\nlearning_rate: 1.0e-4\n"
TRL = """from trl import DPOConfig
args = DPOConfig(
    output_dir="out",
    per_device_train_batch_size=1,
    fp16=True,
)
"""


@every_case(
    ("text", "name", "fix", "added", "removed"),
    [
        (SCRIPT, "train.sh", "{unset: vanilla_loss, safety: safe}", [], ["   --vanilla_loss \\"]),
        (
            SCRIPT, "train.sh", "{set: {micro_batch: 2}, safety: safe}",
            ["   --micro_train_batch_size 2"], ["   --micro_train_batch_size 1"],
        ),
        (
            SCRIPT, "train.sh", "{set: {max_length: 1024}, safety: safe}",
            ["   --micro_train_batch_size 1 \\", "   --max_len 1024"], ["   --micro_train_batch_size 1"],
        ),
        (
            LF, "x.yaml", "{set: {learning_rate: 1.0e-6}, safety: unsafe}",
            ["learning_rate: 1.0e-6"], ["learning_rate: 1.0e-4"],
        ),
        (LF, "x.yaml", "{set: {bf16: true}, safety: unsafe}", ["bf16: true"], []),
        (TRL, "t.py", "{set: {fp16: false}, safety: unsafe}", ["    fp16=False,"], ["    fp16=True,"]),
        (TRL, "t.py", "{set: {beta: 0.5}, safety: unsafe}", ["    beta=0.5,"], []),
        (TRL, "t.py", "{unset: fp16, safety: unsafe}", [], ["    fp16=True,"]),
    ],
)  # fmt: skip
def test_a_canonical_setting_is_written_in_the_users_own_format(
    text: str, name: str, fix: str, added: list[str], removed: list[str]
) -> None:
    found, _, _ = one_fix(text, fix, name=name)
    patch = found.fixes[0].patch
    assert patch is not None
    lines = patch.splitlines()[2:]
    assert [line[1:] for line in lines if line.startswith("+")] == added
    assert [line[1:] for line in lines if line.startswith("-")] == removed


def test_a_fix_says_what_it_clears_and_what_appears() -> None:
    given = parse("", (Attachment(name="train.sh", content=SCRIPT),))
    rules = ruleset(
        rule(
            "has-vanilla", when='has_option("vanilla_loss")', applies="{}", fix="[{unset: vanilla_loss, safety: safe}]"
        ),
        rule("lacks-vanilla", when='not has_option("vanilla_loss")', applies="{}"),
        rule("same-fix", when="micro_batch == 1", applies="{}", fix="[{unset: vanilla_loss, safety: safe}]"),
    )
    calls = []

    def counting(question: str, attachments: object) -> Evidence:
        calls.append(question)
        return parse(question, attachments)  # type: ignore[arg-type]

    report = with_patches(check(given, rules), given, rules, counting)
    first = next(found for found in report.fired if found.rule_id == "has-vanilla").fixes[0]
    assert (first.clears, first.appears) == (("has-vanilla",), ("lacks-vanilla",))
    assert "-   --vanilla_loss \\\n" in (first.patch or "")
    assert len(calls) == 1


def test_the_question_itself_can_be_patched() -> None:
    given = parse(f"Why is the loss nan?\n```bash\n{SCRIPT}```\n")
    rules = ruleset(rule(when='has_option("vanilla_loss")', applies="{}", fix="[{unset: vanilla_loss, safety: safe}]"))
    report = with_patches(check(given, rules), given, rules, lambda q, a: parse(q, a))
    assert (report.fired[0].fixes[0].patch or "").startswith("--- a/question\n")
    assert report.fired[0].fixes[0].clears == ("a-defect",)


@every_case(
    ("fix", "says"),
    [
        ('{upgrade: "openrlhf>=0.3.5", safety: display}', "Install `openrlhf>=0.3.5`."),
        ('{text: {en: "Use {micro_batch}.", zh: "用。"}, safety: display}', "Use 1."),
        ("{unset: no_such_option, safety: safe}", "Remove `no_such_option`."),
        ("{unset: vanilla_loss, safety: display}", "Remove `--vanilla_loss`."),
        ("{set: {rpo_alpha: 1}, safety: safe}", "Set `rpo_alpha: 1`."),
    ],
)
def test_a_fix_that_cannot_be_written_is_described(fix: str, says: str) -> None:
    found, _, _ = one_fix(SCRIPT, fix, when="micro_batch == 1")
    assert (found.fixes[0].text.en, found.fixes[0].edits, found.fixes[0].patch) == (says, (), None)


def test_a_value_is_worked_out_or_only_described() -> None:
    found, _, _ = one_fix(SCRIPT, '{set: {micro_batch: "{micro_batch + 3}"}, safety: unsafe}', when="micro_batch == 1")
    assert "+   --micro_train_batch_size 4" in (found.fixes[0].patch or "")
    found, _, _ = one_fix(SCRIPT, '{set: {micro_batch: "{rpo_alpha + 3}"}, safety: unsafe}', when="micro_batch == 1")
    assert found.fixes[0].edits == ()


def test_a_fix_with_a_condition_is_offered_only_where_it_certainly_holds() -> None:
    found, _, _ = one_fix(SCRIPT, '{unset: vanilla_loss, safety: safe, when: "micro_batch == 2"}')
    assert found.fixes == ()
    found, _, _ = one_fix(SCRIPT, '{unset: vanilla_loss, safety: safe, when: "beta == 2"}')
    assert found.fixes == ()


def test_without_a_framework_a_canonical_setting_has_no_spelling() -> None:
    text = "--micro 1"
    micro = option(text, "--micro 1", "micro", 1, raw="1")
    given = evidence(
        run((micro,), {"micro_batch": setting("micro_batch", 1, micro)}, framework=None), sources={"train.sh": text}
    )
    made = fixes(rule(fix="[{set: {micro_batch: 2}, safety: safe}]").fixes, Facts(given))
    assert (made[0].edits, made[0].text.zh) == ((), "设置 `micro_batch: 2`。")


def test_a_run_without_options_has_no_place_for_a_new_one() -> None:
    made = fixes(
        rule(fix="[{set: {micro_batch: 2}, safety: safe}]").fixes,
        Facts(evidence(run(framework="trl", algorithm="dpo"))),
    )
    assert made[0].edits == ()
    assert made[0].text.en == "Set `--per_device_train_batch_size 2`."


def test_an_option_whose_text_is_not_at_hand_is_not_edited() -> None:
    text = "train --vanilla_loss"
    flag = option(text, "--vanilla_loss", "vanilla_loss")
    given = evidence(run((flag,), {"vanilla_loss": setting("vanilla_loss", True, flag)}))
    made = fixes(rule(fix="[{unset: vanilla_loss, safety: safe}]").fixes, Facts(given))
    assert made[0].edits == ()


def test_sources_that_no_edit_names_stay_as_they_are() -> None:
    one, other = source("ab", "one"), source("cd", "other")
    assert patched([edit("ab", "b", "x", "one")], (one, other)) == (source("ax", "one").__class__(
        name="one", text="ax", byte_count=2), other)  # fmt: skip


def test_a_report_without_edits_comes_back_unchanged() -> None:
    given = parse("", (Attachment(name="train.sh", content=SCRIPT),))
    rules = ruleset(rule(when="micro_batch == 1", applies="{}"))
    report = check(given, rules)
    assert with_patches(report, given, rules, lambda q, a: parse(q, a)) == report
    assert report.fired[0].status is Status.FIRED


def test_every_patch_of_the_shipped_rules_applies_to_the_users_own_lines() -> None:
    given = parse("", (Attachment(name="train.sh", content=SCRIPT),))
    rules = shipped_rules()
    report = with_patches(check(given, rules), given, rules, lambda q, a: parse(q, a))
    made = [fix for found in report.fired for fix in found.fixes if fix.patch]
    assert made
    for each in made:
        for line in (each.patch or "").splitlines()[3:]:
            if line[:1] in (" ", "-"):
                assert line[1:] in SCRIPT.splitlines()


def test_what_the_framework_says_by_leaving_out_is_removed() -> None:
    text = "pip install openrlhf==0.4.5\n" + SCRIPT.replace("--vanilla_loss", "--flash_attn").replace("kto", "rm")
    found, _, _ = one_fix(text, "{set: {attention: eager}, safety: safe}")
    assert found.fixes[0].text.en == "Remove `--flash_attn`."
    assert "-   --flash_attn \\\n" in (found.fixes[0].patch or "")


def test_leaving_out_what_is_not_there_changes_nothing() -> None:
    found, _, _ = one_fix("pip install openrlhf==0.4.5\n" + SCRIPT, "{set: {attention: eager}, safety: safe}")
    assert found.fixes[0].patch is None


def test_a_library_s_own_argument_keeps_its_name() -> None:
    text = (
        "from peft import LoraConfig\nfrom trl import RewardConfig\n"
        "peft = LoraConfig(r=8, task_type='CAUSAL_LM')\nargs = RewardConfig(output_dir='x')\n"
    )
    found, _, _ = one_fix(text, "{set: {peft_task_type: SEQ_CLS}, safety: unsafe}", name="t.py")
    assert '+peft = LoraConfig(r=8, task_type="SEQ_CLS")\n' in (found.fixes[0].patch or "")


def test_safe_edits_of_a_file_are_those_of_safe_fixes_that_do_not_meet() -> None:
    given = parse("", (Attachment(name="train.sh", content=SCRIPT),))
    rules = ruleset(
        rule("one-safe", when='has_option("vanilla_loss")', applies="{}", fix="[{unset: vanilla_loss, safety: safe}]"),
        rule("two-safe", when='has_option("vanilla_loss")', applies="{}", fix="[{unset: vanilla_loss, safety: safe}]"),
        rule("un-safe", when="micro_batch == 1", applies="{}", fix="[{set: {micro_batch: 2}, safety: unsafe}]"),
    )
    report = check(given, rules)
    assert len(safe_edits(report, "train.sh")) == 1
    both = "[{unset: [vanilla_loss, pretrain], safety: safe}]"  # its one edit meets the one that is kept
    more = ruleset(*rules.rules, rule("three-safe", when="micro_batch == 1", applies="{}", fix=both))
    assert safe_edits(check(given, more), "train.sh") == safe_edits(report, "train.sh")
    assert safe_edits(report, "other.sh") == ()


@pytest.mark.parametrize("most", [1_000, 5])
def test_a_diff_shows_only_what_is_around_the_changes(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patches, "_MOST_COMPARED", most)
    lines = [f"line {number}" for number in range(1, 101)]
    after = [*lines[:49], "changed", *lines[50:54], *lines[55:]]
    diff = unified_diff("\n".join(lines), "\n".join(after), "x.sh")
    assert diff.splitlines()[:4] == ["--- a/x.sh", "+++ b/x.sh", "@@ -47,12 +47,11 @@", " line 47"]
    assert diff.splitlines()[-1] == " line 58"
    shown = diff.splitlines()[3:]
    assert {"-line 50", "+changed", "-line 55"} <= set(shown)
    assert [line[1:] for line in shown if line[0] != "+"] == lines[46:58]
    assert [line[1:] for line in shown if line[0] != "-"] == after[46:57]


def test_a_line_separator_inside_a_line_is_no_line_break() -> None:
    diff = unified_diff("a\u2028b\nc\n", "a\u2028b\nd\n", "x.sh")
    assert diff == "--- a/x.sh\n+++ b/x.sh\n@@ -1,2 +1,2 @@\n a\u2028b\n-c\n+d\n"


@pytest.mark.slow
def test_a_diff_of_a_long_repetitive_text_takes_no_time() -> None:
    text = "python train.py \\\n  --lr 1\n\n" * 20_000
    started = time.thread_time()
    diff = unified_diff("first\n" + text, text + "last\n", "x.log")
    assert time.thread_time() - started < 10
    assert diff.startswith("--- a/x.log\n+++ b/x.log\n@@ -1,")


PASTE = "llamafactory-cli train a.yaml\n```yaml\nmodel_name_or_path: google/gemma-2-9b\nflash_attn: fa2\n```\n"
ONE_OF_TWO = (
    FixSpec(safety=Safety.DISPLAY, set={"attention": "eager"}),
    FixSpec(safety=Safety.DISPLAY, upgrade="flash-attn>=2.6.3", alternative=True),
    FixSpec(safety=Safety.DISPLAY, upgrade="transformers>=4.45"),
)


@every_case(
    ("installed", "offered"),
    [
        ("", [False, True, False]),
        ("pip list: flash-attn==2.5.8", [False, True, False]),
        ("pip list: transformers==4.46.0", [False, True]),
        ("pip list: flash-attn==2.7.0", [False, True]),
        ("pip list: flash-attn==2.7.0\ntransformers==4.46.0", [False]),
    ],
)
def test_an_upgrade_to_what_is_installed_is_left_out_and_what_it_was_an_alternative_to_stays_one(
    installed: str, offered: list[bool]
) -> None:
    facts = Facts(parse(PASTE + installed))
    assert [fix.alternative for fix in fixes(ONE_OF_TWO, facts)] == offered


def test_the_first_fix_is_no_alternative_and_one_is_always_offered() -> None:
    facts = Facts(parse(PASTE + "flash-attn==2.7.0\ntransformers==4.46.0"))
    assert [fix.alternative for fix in fixes(ONE_OF_TWO[1:2], facts)] == [False]
    assert [fix.text.en for fix in fixes(ONE_OF_TWO[1:], facts)][:1] == ["Install `flash-attn>=2.6.3`."]


def test_fixes_are_one_sentence_that_says_whether_one_is_enough() -> None:
    offered = fixes(ONE_OF_TWO, Facts(parse(PASTE)))
    assert in_words(offered, "en") == (
        "Set `flash_attn: disabled`; or install `flash-attn>=2.6.3`; install `transformers>=4.45`."
    )
    assert in_words(offered, "zh") == (
        "设置 `flash_attn: disabled`；或者安装 `flash-attn>=2.6.3`；安装 `transformers>=4.45`。"
    )
