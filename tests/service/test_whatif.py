"""What the rules say of a changed configuration."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.every_case import every_case
from tests.shipped import shipped_rules
from trainmedic.kb.engine.checker import check
from trainmedic.kb.engine.rule import RuleSet
from trainmedic.kb.frameworks.canonical import SETTINGS
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.dialogue.what_if import MAX_CHANGES, Effect, WhatIf, what_if

KTO = """deepspeed --module openrlhf.cli.train_kto \\
   --pretrain Qwen/Qwen2.5-7B-Instruct \\
   --micro_train_batch_size 1 \\
   --train_batch_size 64 \\
   --zero_stage 3 \\
   --bf16 --flash_attn \\
   --learning_rate 5e-7
"""
NAN = "{'loss': nan, 'grad_norm': nan, 'learning_rate': 1e-06, 'epoch': 0.01}\n" * 5
PYTHON = """from trl import SFTConfig, SFTTrainer
cfg = SFTConfig(output_dir="x", packing=True, bf16=True, per_device_train_batch_size=2)
trainer = SFTTrainer("Qwen/Qwen2.5-0.5B", args=cfg, train_dataset=data)
"""
PAIRS = "openrlhf-kto-kl-pairs-with-itself"


@pytest.fixture(scope="module")
def rules() -> RuleSet:
    return shipped_rules()


@pytest.fixture(scope="module")
def kto() -> Evidence:
    return pasted(("run.sh", KTO), ("train.log", NAN), ("pip.txt", "transformers==4.43.1\nopenrlhf==0.3.4\n"))


def pasted(*files: tuple[str, str], question: str = "why is the loss nan?") -> Evidence:
    return parse(question, [Attachment(name=name, content=content) for name, content in files])


def ids(effects: tuple[Effect, ...]) -> list[str]:
    return [effect.rule_id for effect in effects]


def made(found: WhatIf) -> dict[str, tuple[str | None, str]]:
    return {change.name: (change.before, change.after) for change in found.changed}


def test_a_larger_micro_batch_clears_the_finding_about_a_micro_batch_of_one(kto: Evidence, rules: RuleSet) -> None:
    assert PAIRS in [finding.rule_id for finding in check(kto, rules).fired]
    found = what_if(kto, {"micro_batch": "2"}, rules, parse)
    assert made(found) == {"micro_batch": ("1", "2")}
    assert ids(found.clears) == [PAIRS]
    assert found.clears[0].title.zh
    assert found.clears[0].title.en
    assert "+   --micro_train_batch_size 2" in found.patch
    assert "--- a/run.sh" in found.patch


def test_another_zero_stage_leaves_that_finding_standing(kto: Evidence, rules: RuleSet) -> None:
    found = what_if(kto, {"zero_stage": "2"}, rules, parse)
    assert PAIRS in ids(found.stays)
    assert not found.clears
    assert not found.appears


def test_what_only_the_old_log_shows_is_neither_cleared_nor_said_to_stay(kto: Evidence, rules: RuleSet) -> None:
    found = what_if(kto, {"zero_stage": "2"}, rules, parse)
    assert "series-not-finite-from-the-start" in ids(found.logged)
    assert "series-not-finite-from-the-start" not in ids(found.stays) + ids(found.appears)


@every_case(
    ("name", "value", "setting", "after"),
    [
        ("--zero_stage", "2", "zero_stage", "2"), ("zero_stage", "ZeRO-2", "zero_stage", "2"),
        ("zero", "stage2", "zero_stage", "2"), ("per_device_train_batch_size", "4", "micro_batch", "4"),
        ("--micro_train_batch_size", "4", "micro_batch", "4"), ("attn_implementation", "eager", "attention", "eager"),
        ("flash_attn", "eager", "attention", "eager"), ("attention", "flash_attention_3", "attention", "flash3"),
        ("lr", "1e-6", "learning_rate", "1e-06"), ("LR", "1e-6", "learning_rate", "1e-06"),
        ("bf16", "no", "bf16", "false"),
    ],
)  # fmt: skip
def test_a_change_is_understood_in_any_of_its_spellings(
    kto: Evidence, rules: RuleSet, name: str, value: str, setting: str, after: str
) -> None:
    found = what_if(kto, {name: value}, rules, parse)
    assert {key: new for key, (_, new) in made(found).items()} == {setting: after}, found.unknown


def test_a_version_is_supposed_and_judged_by_the_options_of_that_release(kto: Evidence, rules: RuleSet) -> None:
    found = what_if(kto, {"openrlhf": "0.9.0"}, rules, parse)
    assert made(found) == {"openrlhf": ("0.3.4", "0.9.0")}
    assert "option-renamed" in ids(found.appears)
    assert not found.patch


def test_a_version_of_two_numbers_may_be_any_patch_release_of_it(kto: Evidence, rules: RuleSet) -> None:
    assert made(what_if(kto, {"transformers": "4.44"}, rules, parse)) == {"transformers": ("4.43.1", "4.44")}


def test_a_setting_that_is_not_written_is_added(kto: Evidence, rules: RuleSet) -> None:
    found = what_if(kto, {"max_length": "1024"}, rules, parse)
    assert "max_length" in made(found)
    assert "+   --max_len 1024" in found.patch


def test_where_we_would_put_a_setting_wrongly_no_finding_about_its_place_appears(rules: RuleSet) -> None:
    found = what_if(pasted(("t.py", PYTHON)), {"lora_rank": "8"}, rules, parse)
    assert made(found) == {"lora_rank": (None, "8")}
    assert not [each for each in ids(found.appears) if each.startswith("option-")]


def test_a_setting_can_be_left_out(rules: RuleSet) -> None:
    found = what_if(pasted(("t.py", PYTHON)), {"packing": "unset"}, rules, parse)
    assert "packing=True" not in next(line for line in found.patch.split("\n") if line.startswith("+cfg"))
    assert [change.name for change in found.changed] == ["packing"]


def test_an_option_that_is_no_common_setting_is_written_as_it_is(kto: Evidence, rules: RuleSet) -> None:
    found = what_if(kto, {"input_key": "prompt"}, rules, parse)
    assert made(found) == {"input_key": (None, "prompt")}
    assert "--input_key prompt" in found.patch


def test_several_changes_are_made_together(kto: Evidence, rules: RuleSet) -> None:
    found = what_if(
        kto, {"zero_stage": "2", "max_length": "1024", "lora_rank": "8", "transformers": "4.44.0"}, rules, parse
    )
    assert set(made(found)) == {"zero_stage", "max_length", "lora_rank", "transformers"}
    assert "--zero_stage 2" in found.patch
    assert "--lora_rank 8" in found.patch


@every_case(
    ("changes", "why"),
    [
        ({"nonsense": "3"}, "there is no setting or option with this name"),
        ({"": "3"}, "there is no setting or option with this name"),
        ({"learning_rate": "fast"}, "this is not a valid value"),
        ({"zero_stage": "7"}, "this is not a valid value"),
        ({"bf16": "maybe"}, "this is not a valid value"),
        ({"attention": "telepathy"}, "this is not a valid value"),
        ({"output_dir": "a\nb: c"}, "this is not a valid value"),
        ({"transformers": "newest"}, "this is not a version number"),
        ({"transformers": "4.43.1"}, "it already has this value"),
        ({"zero_stage": "3"}, "it already has this value"),
    ],
)
def test_what_cannot_be_set_is_named_with_the_reason(
    kto: Evidence, rules: RuleSet, changes: dict[str, str], why: str
) -> None:
    found = what_if(kto, changes, rules, parse)
    assert not found.changed
    assert not found.patch
    assert [each.why.en for each in found.unknown] == [why]
    assert all(each.why.zh for each in found.unknown)


def test_auto_leaves_an_option_of_the_deepspeed_file_to_the_trainer(rules: RuleSet) -> None:
    run = pasted(
        ("sft.yaml", "stage: sft\ndo_train: true\nper_device_train_batch_size: 4\ndeepspeed: ds.json\n"),
        ("ds.json", '{"train_batch_size": 64, "zero_optimization": {"stage": 3}}'),
    )
    found = what_if(run, {"train_batch_size": "auto"}, rules, parse)
    assert (found.unknown, [change.after for change in found.changed]) == ((), ["auto"])


def test_without_a_configuration_nothing_can_be_changed(rules: RuleSet) -> None:
    found = what_if(parse("my loss is nan"), {"attention": "eager"}, rules, parse)
    assert not found.changed
    assert "no configuration" in found.unknown[0].why.en


def test_more_changes_than_are_sensible_are_refused_by_name(kto: Evidence, rules: RuleSet) -> None:
    many = {name: "1" for name in SETTINGS[: MAX_CHANGES + 3]}
    found = what_if(kto, many, rules, parse)
    assert len(found.changed) + len(found.unknown) == len(many)
    assert [u.name for u in found.unknown][-3:] == list(many)[-3:]


def test_a_value_cannot_break_out_of_the_command(kto: Evidence, rules: RuleSet) -> None:
    found = what_if(kto, {"output_dir": "x; rm -rf / && y"}, rules, parse)
    assert made(found)["output_dir"][1] == "x; rm -rf / && y"
    assert "'x; rm -rf / && y'" in found.patch


@given(
    st.dictionaries(
        st.one_of(st.sampled_from(SETTINGS), st.sampled_from(["transformers", "trl", "torch"]), st.text(max_size=12)),
        st.one_of(
            st.sampled_from(["true", "0", "-1", "1e400", "nan", "0.1.2", "eager", "none", "unset", "[1", "{a: b}"]),
            st.text(max_size=12),
        ),
        max_size=3,
    )
)
def test_junk_never_raises_and_every_change_is_accounted_for(changes: dict[str, str]) -> None:
    for evidence in (JUNK_SHELL, JUNK_PYTHON):
        found = what_if(evidence, changes, FEW, parse)
        assert len(found.changed) + len(found.unknown) == len(changes)


JUNK_SHELL, JUNK_PYTHON = pasted(("run.sh", KTO)), pasted(("t.py", PYTHON))
FEW = RuleSet(rules=shipped_rules().rules[:20])
