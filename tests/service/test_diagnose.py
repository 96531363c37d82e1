"""Ranking and verdicts on hand-made knowledge."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.every_case import every_case
from tests.service.values import WEIGHTS, case, context, evidence, finding, missing, question, scored, span
from trainmedic.kb.model.evidence import Evidence, Row
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report import Severity, Status
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.ranking.diagnose import diagnose
from trainmedic.service.ranking.features import NAMES, DefectState, features, finding_weight, overlap
from trainmedic.service.ranking.questions import GENERIC, known

SURE = replace(WEIGHTS, bias=6.0)
"""Any likeness is enough for them."""


def test_a_fired_rule_makes_its_case_the_answer() -> None:
    diagnosis = diagnose(
        [scored(case("case-b"), 1.0), scored(case("case-a"), 0.4)], context(evidence("loss_nan"), finding()), WEIGHTS
    )
    assert diagnosis.verdict == "answered"
    assert diagnosis.causes[0].case.id == "case-a"


def test_names_and_a_symptom_alone_are_asked_back_and_promise_nothing() -> None:
    likely = scored(case("case-a", signals=("loss_nan",)), 1.0)
    sure = context(evidence("loss_nan"))
    assert diagnose([likely], sure, SURE).verdict == "answered"
    assert diagnose([likely], sure, SURE).causes[0].confidence == "high"
    diagnosis = diagnose([likely], context(evidence("loss_nan"), bare=True), SURE)
    assert diagnosis.verdict == "need_input"
    assert diagnosis.causes[0].confidence == "medium"


@every_case(("printed", "word"), [(True, "high"), (False, "medium")])
def test_a_known_defect_is_highly_likely_only_where_its_message_is_printed(printed: bool, word: str) -> None:
    known = case("trl-1", level="defect", affected={"trl": "<0.10"}, signals=("loss_nan",))
    seen = context(evidence("loss_nan", versions={"trl": "0.9.6"}))
    state = DefectState(value=None, printed=printed)
    diagnosis = diagnose([scored(known)], replace(seen, defects={"trl-1": state}), SURE)
    assert diagnosis.causes[0].confidence == word


def test_an_artefact_as_first_cause_means_no_fault() -> None:
    artefact = case("case-a", kind="artefact", signals=("logits_huge",))
    fired = finding(severity=Severity.INFO, symptoms=("logits_huge",), concludes="no_fault")
    diagnosis = diagnose([scored(artefact)], context(evidence("logits_huge"), fired), WEIGHTS)
    assert diagnosis.verdict == "no_fault"
    assert [cause.case.id for cause in diagnosis.causes] == ["case-a"]


def test_a_finding_about_something_else_does_not_make_the_verdict() -> None:
    unrelated = finding(symptoms=("oom",), cases=("case-oom",))
    oom = case("case-oom", signals=("oom",), frameworks=("verl",))
    diagnosis = diagnose([scored(oom, 0.1)], context(evidence("kl_negative"), unrelated), WEIGHTS)
    assert diagnosis.verdict != "answered"


def test_a_question_outside_our_domain_is_not_in_the_knowledge_base() -> None:
    diagnosis = diagnose([scored(case())], context(evidence(framework=None, options=False)), WEIGHTS)
    assert (diagnosis.verdict, diagnosis.causes, diagnosis.missing) == ("not_in_kb", (), ())


def test_a_healthy_configuration_is_no_fault() -> None:
    assert diagnose([], context(evidence()), WEIGHTS).verdict == "no_fault"


def test_a_configuration_is_not_healthy_if_the_question_says_that_it_fails() -> None:
    failed = context(evidence(), says_failed=True)
    assert diagnose([], failed, WEIGHTS).verdict == "need_input"
    assert diagnose([], context(evidence(), says_failed=True, asks_if_normal=True), WEIGHTS).verdict == "need_input"


def test_a_warning_keeps_a_configuration_from_being_called_healthy() -> None:
    warned = context(evidence(), finding(severity=Severity.WARNING, cases=()))
    assert diagnose([], warned, WEIGHTS).verdict != "no_fault"


def test_a_log_without_trouble_is_no_fault() -> None:
    found = evidence("healthy_log", options=False, framework=None)
    with_rows = Evidence(runs=found.runs, rows=(Row(step=1, metrics={}, span=span()),), signals=found.signals)
    assert diagnose([], context(with_rows), WEIGHTS).verdict == "no_fault"


def test_a_likely_fault_is_asked_about_although_no_number_shows_it() -> None:
    strong = replace(WEIGHTS, bias=3.0, answer=1.0)
    assert diagnose([scored(case("a"))], context(evidence()), strong).verdict == "need_input"


@every_case("changed", ["artefact", "reassurance"])
def test_what_only_looks_odd_or_is_asked_to_be_confirmed_is_no_fault(changed: str) -> None:
    one = case("a", kind="artefact" if changed == "artefact" else "fault")
    asked = context(evidence(), asks_if_normal=changed == "reassurance")
    assert diagnose([scored(one)], asked, replace(WEIGHTS, bias=3.0, answer=1.0)).verdict == "no_fault"


def test_what_speaks_for_none_of_the_cases_lowers_all_of_them() -> None:
    doubtful = replace(WEIGHTS, none={**WEIGHTS.none, "vague": 3.0})
    asked = context(evidence("loss_nan"), vague=True)
    first, other = (diagnose([scored(case("a"))], asked, weights).causes for weights in (WEIGHTS, doubtful))
    assert first[0].probability > (other[0].probability if other else 0.0)


def test_a_vague_symptom_is_asked_back() -> None:
    vague = context(evidence("loss_nan", framework=None, options=False))
    diagnosis = diagnose([scored(case("a"), 0.5), scored(case("b", frameworks=("verl",)), 0.5)], vague, WEIGHTS)
    assert diagnosis.verdict == "need_input"
    assert diagnosis.missing


def test_the_first_thing_asked_is_what_separates_the_candidates() -> None:
    vague = context(evidence("loss_nan", framework=None, options=False))
    same: dict[str, Any] = {"algorithms": ("dpo",), "model_families": (), "settings": (), "affected": {}}
    candidates = [scored(case(f"c{n}", frameworks=(name,), **same), 0.6) for n, name in enumerate(["trl", "verl"])]
    assert diagnose(candidates, vague, WEIGHTS).missing[0].fact == "framework"


def test_what_is_known_is_not_asked() -> None:
    told = context(evidence("loss_nan", versions={"trl": "0.12.0"}))
    asks = case(ask=(question("version:trl"), question("version:torch"), question("framework")))
    facts = [item.fact for item in diagnose([scored(asks)], told, WEIGHTS).missing]
    assert "version:trl" not in facts
    assert "framework" not in facts
    assert "version:torch" in facts


def test_what_a_rule_lacks_is_asked_for() -> None:
    unsure = finding(status=Status.CANNOT_TELL, missing=(missing("version:flash-attn"),))
    diagnosis = diagnose([scored(case())], context(evidence("loss_nan"), unsure), WEIGHTS)
    assert diagnosis.missing[0].fact == "version:flash-attn"


@every_case(
    ("left", "right", "expected"),
    [
        (("loss_nan",), ("loss_nan",), 1.0),
        (("loss_nan",), ("grad_norm_nan",), 0.6),
        (("loss_nan",), ("oom",), 0.0),
        ((), ("oom",), 0.0),
    ],
)
def test_symptoms_agree_when_common_or_kin(left: tuple[str, ...], right: tuple[str, ...], expected: float) -> None:
    assert overlap(left, right) == expected


def test_a_finding_counts_in_full_where_no_symptom_was_named() -> None:
    assert finding_weight(finding(), context(evidence())) == 1.0
    assert finding_weight(finding(), context(evidence("oom"))) < 0.2


def test_every_feature_is_given_and_no_other() -> None:
    values = features(scored(case()), context(evidence("loss_nan"), finding()))
    assert tuple(values) == NAMES


def test_a_version_outside_the_affected_range_speaks_against() -> None:
    one = case(affected={"trl": "<0.10"})
    outside = features(scored(one), context(evidence(versions={"trl": "0.12.0"})))
    inside = features(scored(one), context(evidence(versions={"trl": "0.9.6"})))
    unknown = features(scored(one), context(evidence()))
    assert (outside["version_outside"], outside["version_inside"]) == (1.0, 0.0)
    assert (inside["version_outside"], inside["version_inside"]) == (0.0, 1.0)
    assert (unknown["version_outside"], unknown["version_inside"]) == (0.0, 0.0)


def test_a_fact_that_all_causes_share_is_not_asked_for() -> None:
    diagnosis = diagnose([scored(case("a")), scored(case("b"))], context(evidence("loss_nan", framework=None)), WEIGHTS)
    assert "framework" not in [question.fact for question in diagnosis.missing]


@every_case("fact", GENERIC)
def test_nothing_generic_is_known_where_nothing_was_pasted(fact: str) -> None:
    assert not known(fact, context(evidence(framework=None, options=False)))


@every_case(
    ("fact", "question", "name", "content"),
    [
        ("version:transformers", "since transformers 4.30 the learning rate falls too fast", "", ""),
        ("log", "why does the loss grow with accumulation?", "table.md", "| GPUs | loss |\n|---|---|\n| 4 | 6.4 |"),
        ("config", "adapter is empty", "cmd.sh", "torchrun --nproc_per_node=4 finetune.py --lora x"),
    ],
)
def test_what_was_given_in_any_form_is_known(fact: str, question: str, name: str, content: str) -> None:
    files = [Attachment(name=name, content=content)] if name else []
    assert known(fact, context(parse(question, files)))
    assert not known(fact, context(parse("why is the loss nan?")))


def test_findings_about_the_question_come_first_and_then_the_worst() -> None:
    note = finding("note", severity=Severity.INFO)
    aside = finding("aside", severity=Severity.WARNING, symptoms=("cpu_oom_killed",))
    blamed = finding("blamed", severity=Severity.WARNING)
    worst = finding("worst")
    told = context(evidence("loss_nan"), note, aside, blamed, worst)
    assert [item.rule_id for item in diagnose([scored(case())], told, WEIGHTS).findings] == [
        "worst",
        "blamed",
        "note",
        "aside",
    ]


def test_the_order_of_the_candidates_does_not_matter() -> None:
    candidates = [scored(case(name), 0.5) for name in ("b", "a", "c")]
    told = context(evidence("loss_nan"))
    forward, backward = (diagnose(some, told, WEIGHTS) for some in (candidates, candidates[::-1]))
    assert (
        [cause.case.id for cause in forward.causes] == [cause.case.id for cause in backward.causes] == ["a", "b", "c"]
    )
