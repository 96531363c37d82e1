"""Reports for the terminal, GitHub annotations and SARIF."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sarif_pydantic import Sarif

from trainmedic.kb.model.place import Span
from trainmedic.kb.model.report_view import FindingView, MissingView, ProblemView, ReceiptView, ReportView, RunView
from trainmedic.ui.present import github, sarif, text


def place(attachment: str | None = "conf/my run.yaml", line: int = 2, **changes: Any) -> Span:
    values: dict[str, Any] = {"column": 1, "end_line": line, "end_column": 9, "text": "fp16: true"}
    return Span(attachment=attachment, line=line, **(values | changes))


def finding(**changes: Any) -> FindingView:
    values: dict[str, Any] = {
        "rule_id": "a-rule",
        "title": "Both precisions on",
        "severity": "error",
        "status": "fired",
        "message": "fp16 and bf16: 50 % of it\nis wrong",
        "fix": "keep one",
        "patch": "--- a/x\n+++ b/x\n",
        "evidence": (place(),),
        "missing": (),
        "cases": (),
        "clears": ("a-rule",),
    }
    return FindingView(**(values | changes))


UNSURE = finding(
    rule_id="b-rule",
    status="cannot_tell",
    severity="warning",
    evidence=(),
    missing=(MissingView(fact="version:trl", why="why", ask="Which TRL?"),),
)


def report(*findings: FindingView, **changes: Any) -> ReportView:
    run = RunView(
        framework=None,
        algorithm=None,
        stage=None,
        model=None,
        model_family=None,
        reasons={},
        versions={},
        settings={},
    )
    problem = ProblemView(code="yaml_error", message="line 9 cannot be read", evidence=place(line=9))
    values: dict[str, Any] = {
        "findings": findings,
        "run": run,
        "signals": (),
        "receipt": ReceiptView(inputs=(), masked=(), problems=(problem,)),
        "ruleset_version": "r1",
    }
    return ReportView(**(values | changes))


def test_text_names_place_rule_fix_and_counts() -> None:
    default = finding(rule_id="c-rule", evidence=(place(attachment=None, default=True),))
    shown = text.report(report(finding(), UNSURE, default))
    assert "question:2:1: not set, framework default" in shown
    assert "\x1b[" not in shown
    assert "error a-rule: Both precisions on" in shown
    assert "conf/my run.yaml:2:1: fp16: true" in shown
    assert "fix: keep one" in shown
    assert "needs: Which TRL?" in shown
    assert "not read: conf/my run.yaml:9:1: line 9 cannot be read" in shown
    assert shown.endswith("2 errors, 0 warnings, 0 notes, 1 could not be checked\n")


def looked_at() -> ReportView:
    return report(run=replace(report().run, framework="trl", versions={"trl": "1.2.0"}))


def test_text_without_findings_says_in_what_there_were_none() -> None:
    assert text.report(looked_at()).endswith("No findings. Checked: trl; 1 version.\n")
    assert text.report(report()).endswith(
        "No findings: no option, version or log line of a training run was recognised.\n"
    )


def test_text_of_an_unsure_finding_asks_each_question_once() -> None:
    unsure = replace(UNSURE, message="Cannot tell: Which TRL?")
    assert text.report(report(unsure)).count("Which TRL?") == 1


def test_text_shows_patches_only_where_asked() -> None:
    assert "+++ b/x" not in text.report(report(finding()))
    assert "+++ b/x" in text.report(report(finding()), patches=True)


def test_an_annotation_has_its_place_and_cannot_start_a_command() -> None:
    line = github.annotation(finding())
    assert line == (
        "::error file=conf/my run.yaml,line=2,endLine=2,col=1,endColumn=9,title=a-rule%3A Both precisions on"
        "::fp16 and bf16: 50 %25 of it%0Ais wrong%0Akeep one"
    )


def test_an_annotation_over_lines_has_no_columns() -> None:
    assert "col=" not in github.annotation(finding(evidence=(place(end_line=4),)))


def test_what_could_not_be_checked_is_a_notice() -> None:
    assert github.report(report(UNSURE)).startswith("::notice title=b-rule")


def test_sarif_is_valid_for_a_strict_reader() -> None:
    log = sarif.log(report(finding(), UNSURE, failures=("c-rule: broken",)))
    parsed = Sarif.model_validate(log)
    assert len(parsed.runs) == 1
    rule = sarif.rule(finding(title="t" * 2000, fix=""))
    for name in ("shortDescription", "fullDescription", "help"):
        assert 0 < len(rule[name]["text"]) <= 1024


def test_sarif_has_what_code_scanning_wants() -> None:
    run = sarif.log(report(finding(), UNSURE))["runs"][0]
    assert run["automationDetails"] == {"id": "trainmedic/"}
    assert run["columnKind"] == "unicodeCodePoints"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["a-rule", "b-rule"]
    first, second = run["results"]
    location = first["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"] == "conf/my%20run.yaml"
    assert location["region"] == {"startLine": 2, "startColumn": 1, "endLine": 2, "endColumn": 9}
    assert (second["kind"], second["level"], "locations" in second) == ("open", "none", False)
    assert run["invocations"][0]["executionSuccessful"] is True
    assert run["invocations"][0]["toolExecutionNotifications"][0]["descriptor"]["id"] == "yaml_error"


def test_a_file_in_sarif_is_relative_or_a_file_uri() -> None:
    assert sarif.uri("./a b.sh") == "a%20b.sh"
    assert sarif.uri("/work/训练.sh") == "file:///work/%E8%AE%AD%E7%BB%83.sh"


def test_a_result_without_a_file_has_no_location() -> None:
    assert "locations" not in sarif.result(finding(evidence=(place(attachment=None),)), 0)


def test_an_empty_region_is_widened_to_be_valid() -> None:
    region = sarif.location(place(end_column=1))["region"]
    assert region["endColumn"] > region["startColumn"]


@pytest.mark.parametrize("line", [1, 400])
def test_the_fingerprint_stays_when_the_line_moves(line: int) -> None:
    assert sarif.fingerprint(finding(evidence=(place(line=line),))) == sarif.fingerprint(finding())


def test_the_fingerprint_changes_with_the_text() -> None:
    assert sarif.fingerprint(finding(evidence=(place(text="fp16: yes"),))) != sarif.fingerprint(finding())
