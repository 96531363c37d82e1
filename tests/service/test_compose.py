"""The composed answer: what stands in it, in which language, and that everything is cited."""

from __future__ import annotations

import re
from dataclasses import replace

from tests.every_case import every_case
from tests.service.values import WEIGHTS, both, case, context, draft_of, evidence, finding, patched, scored, span
from trainmedic.kb.model.evidence import Problem, Receipt
from trainmedic.kb.model.report import Finding, Report, Severity, Status
from trainmedic.service.answer.assemble import cause_views
from trainmedic.service.answer.citations import Citations, plain_text
from trainmedic.service.answer.layout import composed
from trainmedic.service.answer.passages import receipt_lines
from trainmedic.service.answer.schema import Citation, Language, markdown
from trainmedic.service.ranking.diagnose import Diagnosis, diagnose
from trainmedic.service.ranking.features import Context
from trainmedic.service.ranking.inference import Cause

LANGUAGES = ("en", "zh")


def answered(language: Language) -> tuple[str, tuple[Citation, ...]]:
    shared = context(evidence("loss_nan"), finding(fixes=(patched(),)))
    diagnosis = diagnose([scored(case()), scored(case("case-b", rules=()), 0.5)], shared, WEIGHTS)
    return text_of(diagnosis, shared, language)


def text_of(
    diagnosis: Diagnosis, shared: Context, language: Language = "en", *, same: bool = False
) -> tuple[str, tuple[Citation, ...]]:
    citations = Citations(language)
    return markdown(composed(draft_of(diagnosis, shared, language, same=same), citations)), citations.all()


def test_an_answer_holds_cause_evidence_fix_patch_and_refutations() -> None:
    text, _ = answered("en")
    for part in ("title of case-a", "cause of case-a", "rule-a says so", "train.sh:3:2", "drop --bad", "```diff"):
        assert part in text
    assert "**lower the LR.** the gradient is NaN already" in text
    assert "Checked again with the patch: the problem is gone." in text


@every_case("language", LANGUAGES)
def test_markers_and_citations_are_the_same_set(language: Language) -> None:
    text, citations = answered(language)
    assert {int(m) for m in re.findall(r"\[(\d+)\]", text)} == {c.marker for c in citations}


def test_the_receipt_says_what_was_masked_and_what_was_not_read() -> None:
    receipt = Receipt(masked=(("hf_token", 2),), problems=(Problem(code="yaml_error", message="m", span=span()),))
    assert receipt_lines(receipt, "en") == [
        "Masked before processing: 2 × hf_token.",
        "Parsed with problems: train.sh:3:2 yaml_error.",
    ]


def test_an_unrelated_finding_is_listed_apart() -> None:
    other = finding("rule-b", symptoms=("oom",), cases=(), severity=Severity.WARNING)
    shared = context(evidence("loss_nan"), finding(), other)
    text, _ = text_of(diagnose([scored(case())], shared, WEIGHTS), shared, "en")
    assert text.index("### Also found in your input") < text.index("rule-b says so")


@every_case("repairs", (True, False))
def test_only_a_patch_that_belongs_to_the_cause_stands_under_it(repairs: bool) -> None:
    fix = replace(patched(), text=both("save more"), repairs=repairs)
    other = finding("rule-b", symptoms=("loss_nan",), cases=(), fixes=(fix,))
    shared = context(evidence("loss_nan"), finding(cases=("case-a",)), other)
    text, _ = text_of(diagnose([scored(case())], shared, WEIGHTS), shared, "en")
    aside = text.partition("### Also found in your input")[2]
    assert text.count("```diff") == aside.count("```diff") == 1
    assert "rule-b says so" in aside
    assert "save more" in aside
    assert "the problem is gone" not in text
    assert ("one finding is gone" in aside) is repairs


def test_the_patch_of_a_rule_of_the_causes_own_origin_is_its_patch() -> None:
    sibling = case("case-b", rules=("rule-b",))
    shared = context(evidence("loss_nan"), finding(), finding("rule-b", cases=("case-b",), fixes=(patched(),)))
    diagnosis = diagnose([scored(case())], shared, WEIGHTS)
    (first,) = diagnosis.causes
    joined = replace(diagnosis, causes=(replace(first, members=(replace(first, case=sibling, findings=()),)),))
    for each, is_own in ((diagnosis, False), (joined, True)):
        text, _ = text_of(each, shared, "en")
        assert (text.index("```diff") < text.index("**Verify:**")) is is_own


def test_a_patch_of_what_is_only_reported_is_no_fix_of_its_own_case() -> None:
    silent = finding(fixes=(replace(patched(), repairs=False),))
    shared = context(evidence("loss_nan"), silent)
    text, _ = text_of(diagnose([scored(case())], shared, WEIGHTS), shared, "en")
    assert "```diff" not in text
    assert "fix of case-a" in text


def test_a_default_is_said_to_be_one() -> None:
    shared = context(evidence("loss_nan"), finding(evidence=(span(default=True),)))
    text, _ = text_of(diagnose([scored(case())], shared, WEIGHTS), shared, "en")
    assert "train.sh:3:2: not set, framework default" in text


def test_a_quoted_backtick_cannot_end_the_quotation() -> None:
    shared = context(evidence("loss_nan"), finding(evidence=(span("`rm -rf`"),)))
    text, _ = text_of(diagnose([scored(case())], shared, WEIGHTS), shared, "en")
    assert "`'rm -rf'`" in text


def test_causes_on_the_wire_are_plain_text() -> None:
    shared = context(evidence("loss_nan"), finding())
    (view, *_) = cause_views(draft_of(diagnose([scored(case())], shared, WEIGHTS), shared, "en"), "en")
    assert (view.rank, view.case_id, view.findings) == (1, "case-a", ("rule-a",))
    assert view.refutations[0].claim == "lower the LR"


def test_a_finding_that_could_not_be_decided_is_not_evidence() -> None:
    unsure = finding(status=Status.CANNOT_TELL)
    shared = context(evidence("loss_nan"), unsure)
    (view, *_) = cause_views(draft_of(diagnose([scored(case())], shared, WEIGHTS), shared, "en"), "en")
    assert view.findings == ()


def test_markdown_marks_are_removed_from_plain_text() -> None:
    assert plain_text("## Fix\n**Use** `bf16`, see [the docs](https://x.y).") == "Fix\nUse bf16, see the docs."


def test_an_answer_that_asks_back_says_what_is_most_likely_how_to_confirm_it_and_what_does_not_help() -> None:
    shared = context(evidence("loss_nan"))
    likely = replace(WEIGHTS, answer=0.99, medium=0.1)
    diagnosis = diagnose([scored(case(rules=()))], shared, likely)
    assert diagnosis.verdict == "need_input"
    text, _ = text_of(diagnosis, shared, "en")
    parts = ("### Most likely so far", "### Fix", "**Verify:** look at", "**lower the LR.** the gradient is NaN")
    order = [text.index(part) for part in parts]
    assert order == sorted(order)


def test_a_cause_that_the_paste_speaks_against_is_neither_sure_nor_shown_as_likely() -> None:
    shared = context(evidence("loss_nan"))
    ruled_out = replace(shared, report=Report(ruleset_version="r1", ruled_out=frozenset({"rule-a"})))
    likely = replace(WEIGHTS, bias=3.0, answer=0.5, medium=0.1)
    diagnosis = diagnose([scored(case(settings=("bad",)))], ruled_out, likely)
    assert (diagnosis.verdict, diagnosis.causes[0].confidence) == ("need_input", "low")
    assert "### Most likely so far" not in text_of(diagnosis, ruled_out, "en")[0]


def harmless(*findings: Finding) -> str:
    cause = Cause(
        case=case("case-a", kind="artefact"), probability=0.05, confidence="low", findings=findings, features={}
    )
    diagnosis = Diagnosis(verdict="no_fault", causes=(cause,), missing=())
    return text_of(diagnosis, context(evidence(), *findings), "en")[0]


def test_an_unlikely_harmless_explanation_does_not_lead() -> None:
    assert "**No fault found" in harmless()


def test_a_harmless_explanation_that_a_rule_found_leads_and_doubts_nothing() -> None:
    text = harmless(finding(severity=Severity.INFO))
    assert "**This is normal:** " in text
    assert "Confidence: low" not in text


@every_case(("severity", "said"), [(Severity.ERROR, True), (Severity.WARNING, False)])
def test_without_a_case_an_error_in_the_paste_is_what_is_said_first(severity: Severity, said: bool) -> None:
    shared = context(evidence("loss_nan"), finding(severity=severity))
    text, _ = text_of(Diagnosis(verdict="not_in_kb", causes=(), missing=()), shared, "en")
    assert ("the rules found a fault in your input" in text) is said
    assert ("has no case" in text) is not said


@every_case("language", LANGUAGES)
def test_each_section_names_its_kind_and_the_citations_in_it(language: Language) -> None:
    shared = context(evidence("loss_nan"), finding(fixes=(patched(),)))
    diagnosis = diagnose(
        [scored(case()), scored(case("case-b", rules=()), 0.5)], shared, replace(WEIGHTS, plausible=0.2)
    )
    sections = composed(draft_of(diagnosis, shared, language), Citations(language))
    kinds = [section.kind for section in sections]
    before = ["receipt", "lead", "confidence", "because", "diff", "change", "places", "verify"]
    assert kinds == [*before, "cause", "fix", "refuted"]
    assert [section.kind for section in sections if not section.folded] == before
    for section in sections:
        assert {f"[{marker}]" for marker in section.markers} == set(re.findall(r"\[\d+\]", section.body))


def test_a_section_without_a_heading_continues_the_one_before_it() -> None:
    shared = context(evidence("loss_nan"), finding(fixes=(patched(),)))
    sections = composed(draft_of(diagnose([scored(case())], shared, WEIGHTS), shared, "en"), Citations("en"))
    headings = {section.kind: section.heading for section in sections}
    assert (headings["diff"], headings["change"], headings["fix"]) == ("Fix", "", "More about the fix")


def test_the_items_of_a_list_stand_alone() -> None:
    shared = context(evidence("loss_nan"), finding(), finding("rule-b", cases=()))
    sections = composed(draft_of(diagnose([scored(case())], shared, WEIGHTS), shared, "en"), Citations("en"))
    items = {section.kind: section.items for section in sections}
    assert items["receipt"] == ("Read: train.sh (command, 3 lines).",)
    assert items["seen"] == ("rule-b says so [4]",)
