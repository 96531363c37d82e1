"""Running rules: applicability, three values, what is reported, and that one bad rule harms nobody."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from tests.every_case import every_case
from tests.rules.support import (
    evidence,
    option,
    page,
    recognised,
    row,
    rule,
    ruleset,
    run,
    setting,
    signal,
    span,
    version,
)
from tests.shipped import shipped_rules
from trainmedic.kb.engine.asks import missing
from trainmedic.kb.engine.checker import check
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.engine.rule import Rule, RuleSet
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report import Severity, Status
from trainmedic.kb.pages.rule import load_rules
from trainmedic.kb.parse.pipeline import parse

TEXT = "deepspeed train_kto --vanilla_loss --micro_train_batch_size 1"


def command(**more: object) -> Evidence:
    flag = option(TEXT, "--vanilla_loss", "vanilla_loss")
    micro = option(TEXT, "--micro_train_batch_size 1", "micro_train_batch_size", 1, raw="1")
    settings = {"vanilla_loss": setting("vanilla_loss", True, flag), "micro_batch": setting("micro_batch", 1, micro)}
    return evidence(run((flag, micro), settings), sources={"train.sh": TEXT})


def test_a_rule_fires_with_measured_values_and_places() -> None:
    one = rule(when="vanilla_loss and micro_batch == 1", message="micro batch {micro_batch}")
    report = check(command(), ruleset(one))
    (found,) = report.fired
    assert (found.rule_id, found.severity, found.message.en) == ("a-defect", Severity.ERROR, "micro batch 1")
    assert [place.text for place in found.evidence] == ["--vanilla_loss", "--micro_train_batch_size 1"]
    assert report.clear == ()
    assert report.ruleset_version == "test"


def test_every_rule_is_reported_or_clear() -> None:
    rules = ruleset(
        rule("b-clear", when="micro_batch == 2"), rule("a-fires"), rule("c-other", applies="{algorithm: [dpo]}")
    )
    report = check(command(), rules)
    assert [found.rule_id for found in report.findings] == ["a-fires"]
    assert report.clear == ("b-clear", "c-other")


@every_case(
    ("applies", "applied"),
    [
        ("{framework: [openrlhf], algorithm: [kto, dpo]}", True),
        ("{framework: [trl]}", False),
        ("{algorithm: [dpo]}", False),
        ("{stage: [preference]}", False),
        ("{}", True),
    ],
)
def test_a_rule_applies_only_where_every_scope_is_recognised(applies: str, applied: bool) -> None:
    assert bool(check(command(), ruleset(rule(applies=applies))).fired) is applied


def test_an_unrecognised_framework_makes_its_rules_clear() -> None:
    given = command()
    unknown = replace(given, runs=(replace(given.run, framework=None),))
    assert check(unknown, ruleset(rule(when="vanilla_loss and beta == 1"))).findings == ()


def test_a_rule_cannot_tell_and_asks_in_the_frameworks_own_words() -> None:
    one = rule(when="vanilla_loss and bf16 == False", applies='{framework: [openrlhf], versions: {openrlhf: "<0.3.4"}}')
    (found,) = check(command(), ruleset(one)).cannot_tell
    assert [each.fact for each in found.missing] == ["setting:bf16", "version:openrlhf"]
    assert "`bf16`" in found.missing[0].ask.en
    assert "pip show openrlhf" in found.missing[1].ask.zh
    assert found.fixes == ()
    assert found.message.zh.startswith("无法判断")
    assert found.missing[0].why.en.endswith("A defect")


def test_nothing_is_asked_where_nothing_the_user_brought_holds() -> None:
    assert check(command(), ruleset(rule(when="bf16 == False and beta == 1"))).findings == ()


OLD = version("openrlhf", "0.3.3")
OF_OLD = 'versions: {openrlhf: "<0.3.4"}'


@every_case(
    ("given", "applies"),
    [
        (evidence(run(framework=None, algorithm=None), versions=[OLD]), f"{{{OF_OLD}}}"),
        (evidence(run(algorithm="kto"), versions=[OLD]), f"{{framework: [openrlhf], algorithm: [kto], {OF_OLD}}}"),
        (
            evidence(run(framework=None), versions=[OLD, version("deepspeed", "0.14.0")]),
            '{versions: {openrlhf: "<0.3.4", deepspeed: "<0.15"}}',
        ),
    ],
)
def test_versions_alone_raise_no_question_about_options(given: Evidence, applies: str) -> None:
    assert check(given, ruleset(rule(when="beta == 1", applies=applies))).findings == ()


def test_versions_alone_raise_questions_about_other_versions() -> None:
    one = rule(when='version("deepspeed", "<0.15")', applies=f"{{{OF_OLD}}}")
    (found,) = check(evidence(run(), versions=[OLD]), ruleset(one)).cannot_tell
    assert [each.fact for each in found.missing] == ["version:deepspeed"]


def test_versions_beside_an_option_or_a_symptom_raise_questions_about_options() -> None:
    one = rule(when="beta == 1", applies=f"{{{OF_OLD}}}")
    beside = replace(command(), versions={"openrlhf": OLD})
    assert [each.fact for each in check(beside, ruleset(one)).cannot_tell[0].missing] == ["setting:beta"]
    two = rule(when='beta == 1 and signal("loss_nan")', applies=f"{{{OF_OLD}}}")
    shown = evidence(run(), signals=[signal("loss_nan")], versions=[OLD])
    assert [each.fact for each in check(shown, ruleset(two)).cannot_tell[0].missing] == ["setting:beta"]


def test_a_version_raises_no_question_about_a_log() -> None:
    one = rule(when='version("openrlhf", "<0.3.4") and log_says("tracker is not empty")')
    assert check(replace(command(), versions={"openrlhf": OLD}), ruleset(one)).findings == ()


def test_the_version_range_of_applies_is_part_of_the_condition() -> None:
    one = rule(applies='{framework: [openrlhf], versions: {openrlhf: "<0.3.4"}}')
    old = replace(command(), versions={"openrlhf": version("openrlhf", "0.3.3")})
    new = replace(command(), versions={"openrlhf": version("openrlhf", "0.3.4")})
    assert [place.text for place in check(old, ruleset(one)).fired[0].evidence] == ["--vanilla_loss", "openrlhf==0.3.3"]
    assert check(new, ruleset(one)).clear == ("a-defect",)


def test_a_finding_without_pasted_evidence_points_at_what_applies_matched() -> None:
    named = run(framework=None, algorithm=None, settings={"bf16": setting("bf16", False)})
    named = replace(named, algorithm=recognised("kto", span("train_kto", "kto")), anchor=span("train_kto", "train"))
    (found,) = check(evidence(named), ruleset(rule(when="not bf16", applies="{algorithm: [kto]}"))).fired
    assert [(place.text, place.default) for place in found.evidence] == [("kto", False), ("train", True)]


def test_a_rule_that_raises_is_reported_and_the_rest_run() -> None:
    def broken(facts: Facts) -> Outcome:
        raise ZeroDivisionError("oh")

    rules = ruleset(rule("fires-too"), replace(rule("raises-here"), condition=None, check=broken))
    report = check(command(), rules)
    assert [found.rule_id for found in report.fired] == ["fires-too"]
    assert [(each.rule_id, each.message) for each in report.failures] == [("raises-here", "ZeroDivisionError: oh")]
    assert "raises-here" not in report.clear


def module_rule(outcome: Outcome, applies: str = "{framework: [openrlhf]}") -> Rule:
    return replace(rule(applies=applies, message="{micro_batch}"), condition=None, check=lambda facts: outcome)


def test_a_module_answers_with_the_same_three_values() -> None:
    place = span(TEXT, "--vanilla_loss", "train.sh")
    fired = check(
        command(), ruleset(module_rule(Outcome(value=True, evidence=(place,), values={"micro_batch": "one"})))
    )
    assert (fired.fired[0].message.en, fired.fired[0].evidence) == ("one", (place,))
    unknown = Outcome(value=None, missing=("log",), user_provided=True)
    assert check(command(), ruleset(module_rule(unknown))).cannot_tell[0].missing[0].fact == "log"
    assert check(command(), ruleset(module_rule(replace(unknown, user_provided=False)))).findings == ()
    assert check(command(), ruleset(module_rule(Outcome(value=False)))).clear == ("a-defect",)


def test_a_module_is_joined_with_the_versions_of_its_page() -> None:
    applies = '{versions: {openrlhf: "<0.3.4"}}'
    one = module_rule(Outcome(value=True, user_provided=True), applies)
    assert check(command(), ruleset(one)).cannot_tell[0].missing[0].fact == "version:openrlhf"
    old = replace(command(), versions={"openrlhf": version("openrlhf", "0.3.3")})
    assert check(old, ruleset(one)).fired[0].evidence[0].text == "openrlhf==0.3.3"
    new = replace(command(), versions={"openrlhf": version("openrlhf", "0.9.0")})
    assert check(new, ruleset(one)).findings == ()
    assert check(old, ruleset(module_rule(Outcome(value=False), applies))).findings == ()


def test_a_module_beside_the_page_is_imported_when_first_needed(tmp_path: Path) -> None:
    def checked(id: str, function: str) -> str:
        return page(id, when="").replace("status:", f"check: {function}\n    status:")

    (tmp_path / "a-defect.md").write_text(checked("a-defect", "own.vanilla"))
    (tmp_path / "own.py").write_text(
        "from trainmedic.kb.engine.outcome import Outcome\n\ndef vanilla(facts):\n"
        "    return Outcome(value=facts.name('vanilla_loss').value is True)\n"
    )
    (tmp_path / "bad-module.md").write_text(checked("bad-module", "bad-module.check"))
    (tmp_path / "bad-module.py").write_text("import no_such_module_at_all\n")
    loaded = load_rules((tmp_path,))
    for _ in range(2):
        report = check(command(), loaded)
        assert "a-defect" in {found.rule_id for found in report.fired}
        assert [failure.rule_id for failure in report.failures] == ["bad-module"]


def test_the_same_finding_of_two_runs_is_given_once() -> None:
    given = command()
    twice = replace(given, runs=(given.run, replace(given.run, id="second")))
    (found,) = check(twice, ruleset(rule())).fired
    assert found.run_id == "run"


def test_a_paste_without_any_run_is_checked_as_one_empty_run() -> None:
    assert check(Evidence(), ruleset(rule(applies="{}"))).clear == ("a-defect",)


def test_findings_are_in_order_of_severity_and_place() -> None:
    rules = ruleset(
        rule("a-warning", severity="warning"),
        rule("b-late", when="micro_batch == 1"),
        rule("c-early"),
        rule("d-unknown", when="vanilla_loss and beta == 1"),
    )
    assert [found.rule_id for found in check(command(), rules).findings] == [
        "c-early",
        "b-late",
        "a-warning",
        "d-unknown",
    ]


def test_a_report_is_the_same_every_time() -> None:
    rules = shipped_rules()
    assert check(command(), rules) == check(command(), rules)


@every_case(
    ("fact", "says"),
    [
        ("version:trl", "pip show trl"), ("setting:bf16", "`bf16`"), ("option:x", "`x`"), ("metric:kl", "`kl`"),
        ("log", "log"), ("framework", "framework"), ("something else", "something else"),
    ],
)  # fmt: skip
def test_every_missing_fact_has_a_question_in_both_languages(fact: str, says: str) -> None:
    asked = missing(fact, rule().title)
    assert says in asked.ask.en
    assert asked.ask.zh
    assert asked.ask.zh != asked.ask.en


CONFIG = """deepspeed --module openrlhf.cli.train_kto \\
   --pretrain Qwen/Qwen2-7B --micro_train_batch_size 2 --train_batch_size 128 --max_len 8192 --zero_stage 3 \\
   --beta 0.1 --learning_rate 5e-7 --bf16 --gradient_checkpointing
"""


def test_all_rules_on_one_parsed_config_take_milliseconds_and_seven_times_as_many_seven_times_that() -> None:
    rules = shipped_rules()
    given = parse("", (Attachment(name="train.sh", content=CONFIG),))
    given = replace(given, rows=(row(1, loss=0.5, grad_norm=1.0),))
    many = RuleSet(rules=tuple(replace(each, id=f"{each.id}-{n}") for n in range(7) for each in rules.rules))
    check(given, rules), check(given, many)

    def best(which: RuleSet) -> float:
        times = []
        for _ in range(20):
            start = time.thread_time()
            check(given, which)
            times.append(time.thread_time() - start)
        return min(times)

    assert best(rules) < 0.050
    assert best(many) < 21 * best(rules)
    assert check(given, rules).failures == ()
    assert all(found.status is not Status.CLEAR for found in check(given, rules).findings)
