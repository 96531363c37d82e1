"""What a patch clears and what it brings up, when a log of the unpatched run was pasted with the configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.incidents import SWIFT_COMMAND, SWIFT_LOG
from tests.rules.support import rule, ruleset
from tests.shipped import shipped_rules
from trainmedic.kb.engine.checker import check, fired_rules
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.engine.patches import with_patches
from trainmedic.kb.engine.rule import RuleSet
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report import Fix, Safety
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.answer.views import finding_view

COMMAND = """deepspeed --module openrlhf.cli.train_kto \\
   --pretrain Qwen/Qwen2-7B \\
   --vanilla_loss \\
   --micro_train_batch_size 1
"""
LOG = "{'loss': nan, 'grad_norm': nan, 'learning_rate': 1e-06, 'epoch': 0.01}\n"
UNSET = "[{unset: vanilla_loss, safety: safe}]"
WITH_LOG = (Attachment(name="train.sh", content=COMMAND), Attachment(name="train.log", content=LOG))
SWIFT = (
    Attachment(name="train.sh", content=SWIFT_COMMAND),
    Attachment(name="pip.txt", content="ms-swift==3.1.0\n"),
    Attachment(name="train.log", content=SWIFT_LOG),
)


def fix_of(rule_id: str, given: Evidence, rules: RuleSet) -> Fix:
    report = with_patches(check(given, rules), given, rules, lambda q, a: parse(q, a))
    return next(found for found in report.fired if found.rule_id == rule_id).fixes[0]


def test_the_log_of_the_unpatched_run_does_not_blame_the_patched_one() -> None:
    rules = ruleset(
        rule("has-vanilla", when="vanilla_loss", fix=UNSET),
        rule("blames-the-log", when='signal("loss_nan") and not has_option("vanilla_loss")'),
        rule("blames-the-configuration", when='not has_option("vanilla_loss")'),
    )
    given = parse("", WITH_LOG)
    assert fix_of("has-vanilla", given, rules).appears == ("blames-the-configuration",)


def test_what_the_user_says_goes_wrong_is_said_of_the_unpatched_run_too() -> None:
    rules = ruleset(
        rule("has-vanilla", when="vanilla_loss", fix=UNSET),
        rule("blames-the-words", when='signal("loss_nan") and not has_option("vanilla_loss")'),
    )
    given = parse("loss is nan from the first step", WITH_LOG[:1])
    assert given.has("loss_nan")
    assert fix_of("has-vanilla", given, rules).appears == ()


def test_a_finding_that_needs_the_log_is_cleared_by_the_configuration() -> None:
    rules = ruleset(
        rule("has-vanilla", when='signal("loss_nan") and vanilla_loss', fix=UNSET),
        rule("stays", when='signal("loss_nan")'),
    )
    assert fix_of("has-vanilla", parse("", WITH_LOG), rules).clears == ("has-vanilla",)


def test_a_rule_that_fires_already_does_not_appear() -> None:
    rules = ruleset(
        rule("has-vanilla", when="vanilla_loss", fix=UNSET),
        rule("either", when='signal("loss_nan") or not has_option("vanilla_loss")'),
    )
    made = fix_of("has-vanilla", parse("", WITH_LOG), rules)
    assert (made.clears, made.appears) == (("has-vanilla",), ())


def test_the_shipped_rules_do_not_hold_the_old_log_against_a_patch() -> None:
    rules = shipped_rules()
    made = fix_of("swift-rlhf-sequence-parallel-nan", parse("", SWIFT), rules)
    assert "swift-rlhf-sequence-parallel-nan" in made.clears
    assert made.appears == ()
    patched = SWIFT_COMMAND.replace("--sequence_parallel_size 4", "--sequence_parallel_size 1")
    assert fired_rules(parse("", (replace(SWIFT[0], content=patched), *SWIFT[1:])), rules), "the old log blames it"


def test_a_log_is_not_read_again_but_what_configures_the_run_is() -> None:
    seen: list[list[str]] = []

    def watched(question: str, attachments: Sequence[Attachment]) -> Evidence:
        seen.append([attachment.name for attachment in attachments])
        return parse(question, attachments)

    dumped = Attachment(name="start.log", content="Namespace(pretrain='Qwen/Qwen2-7B', zpg=1, flash_attn=True)\n" + LOG)
    said = Attachment(name="notes.md", content="We train with OpenRLHF, the model is Qwen2-7B and the loss is nan.\n")
    versions = Attachment(name="pip.log", content="openrlhf==0.3.4\n" + LOG)
    given = parse("", (*WITH_LOG, dumped, said, versions))
    rules = ruleset(rule("has-vanilla", when="vanilla_loss", fix=UNSET))
    with_patches(check(given, rules), given, rules, watched)
    assert seen == [["train.sh", "start.log", "notes.md", "pip.log"]]


def test_a_log_that_is_left_out_changes_nothing_about_the_run() -> None:
    whole, alone = parse("", SWIFT), parse("", SWIFT[:2])
    assert whole.rows
    assert not alone.rows
    assert whole.runs == alone.runs
    assert whole.versions == alone.versions


def test_a_rule_that_raises_fires_nowhere() -> None:
    def broken(facts: Facts) -> Outcome:
        raise ZeroDivisionError

    rules = ruleset(rule("has-vanilla", when="vanilla_loss"), replace(rule("raises"), condition=None, check=broken))
    two = COMMAND + "\n" + COMMAND.replace("--micro_train_batch_size 1", "--micro_train_batch_size 2")
    given = parse("", (Attachment(name="two.sh", content=two),))
    assert len(given.runs) == 2
    assert fired_rules(given, rules) == {"has-vanilla"}


def test_a_patch_that_nobody_can_read_is_left_out() -> None:
    rules = ruleset(rule("has-vanilla", when="vanilla_loss", fix=UNSET))
    for length, is_shown in ((10, True), (1_000_000, False)):
        command = COMMAND.replace("Qwen2-7B", "a" * length)
        fix = fix_of("has-vanilla", parse("", (Attachment(name="train.sh", content=command),)), rules)
        assert (fix.patch is not None) is is_shown
        assert fix.clears == ("has-vanilla",)


def test_a_rule_about_how_the_log_looks_repairs_nothing_unless_the_option_itself_is_the_error() -> None:
    silent = {rule.id for rule in shipped_rules().rules if not all(fix.repairs for fix in rule.fixes)}
    assert silent == {"loss-zero-hides-nan", "trainer-logging-steps-beyond-run"}
    looks = rule("looks", when="vanilla_loss", fix="[{set: {logging_steps: 1}, safety: safe}]", severity="warning")
    micro = rule("has-micro", when="micro_batch == 1", fix="[{set: {micro_batch: 2}, safety: unsafe}]")
    both = rule("both", when="vanilla_loss", fix="[{set: {logging_steps: 1, micro_batch: 2}, safety: unsafe}]")
    given = parse("", WITH_LOG)
    report = with_patches(check(given, ruleset(looks, micro)), given, ruleset(looks, micro), lambda q, a: parse(q, a))
    views = {each.rule_id: finding_view(each, "en") for each in report.fired}
    assert views["looks"].patch
    assert not views["looks"].clears
    assert views["has-micro"].clears
    assert report.repair is None
    assert [
        fix.repairs
        for made in (looks, both, rule("error", fix="[{set: {logging_steps: 1}, safety: safe}]"))
        for fix in made.fixes
    ] == [False, True, True]


def test_one_patch_repairs_every_fault_and_a_single_fault_needs_none() -> None:
    rules = ruleset(
        rule("has-vanilla", when="vanilla_loss", fix=UNSET),
        rule("has-micro", when="micro_batch == 1", fix="[{set: {micro_batch: 2}, safety: unsafe}]"),
        rule("remark", when="vanilla_loss", fix=UNSET, severity="info"),
    )
    given = parse("", WITH_LOG)
    repair = with_patches(check(given, rules), given, rules, lambda q, a: parse(q, a)).repair
    assert repair is not None
    assert repair.patch is not None
    assert "-   --vanilla_loss" in repair.patch
    assert "+   --micro_train_batch_size 2" in repair.patch
    assert set(repair.clears) == {"has-vanilla", "has-micro", "remark"}
    assert repair.safety is Safety.UNSAFE
    alone = ruleset(rule("has-vanilla", when="vanilla_loss", fix=UNSET))
    assert with_patches(check(given, alone), given, alone, lambda q, a: parse(q, a)).repair is None


def test_an_option_that_a_command_drops_is_renamed_where_it_stands() -> None:
    command = "trl sft --model_name_or_path Qwen/Qwen2.5-7B \\\n  --max_seq_length 2048 --packing --output_dir out\n"
    files = (Attachment(name="run.sh", content=command), Attachment(name="pip.txt", content="trl==0.20.0\n"))
    fix = fix_of("option-of-other-release-ignored", parse("", files), shipped_rules())
    assert "\n+  --max_length 2048 --packing --output_dir out\n" in (fix.patch or "")
