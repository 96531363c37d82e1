"""A report as SARIF 2.1.0, within what GitHub code scanning accepts.

https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from importlib.metadata import version as package_version
from typing import Any
from urllib.parse import quote

from trainmedic.kb.model.place import Span
from trainmedic.kb.model.report_view import FindingView, HorizonView, ProblemView, ReportView
from trainmedic.service.answer.schema import AuditView, DefectView

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
INFORMATION = "https://github.com/trainmedic/trainmedic"
LEVELS = {"error": "error", "warning": "warning", "info": "note"}
PROBLEM_SEVERITY = {"error": "error", "warning": "warning", "info": "recommendation"}
DEFECT_LEVELS = {
    **dict.fromkeys(("silent", "hang", "crash", "save"), "error"),
    **dict.fromkeys(("resume", "memory", "slow"), "warning"),
    "log": "note",
}
DEFECT_SEVERITY = {"error": "error", "warning": "warning", "note": "recommendation"}
MAX_TEXT = 1024
MAX_RESULTS = 5_000
"""GitHub shows this many of a run's results."""


def render(view: ReportView | AuditView, *, with_possible: bool = False) -> str:
    document = audit_log(view, with_possible=with_possible) if isinstance(view, AuditView) else log(view)
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def log(view: ReportView) -> dict[str, Any]:
    """One SARIF log with one run. A finding that cannot be decided is a result of kind ``open`` without a place."""
    shown = list(view.findings[:MAX_RESULTS])
    ids = sorted({item.rule_id for item in shown})
    by_id = {item.rule_id: item for item in reversed(shown)}
    return _log(
        rules=[rule(by_id[rule_id]) for rule_id in ids],
        results=[result(item, ids.index(item.rule_id)) for item in shown],
        problems=view.receipt.problems,
        failures=view.failures,
        horizon=view.horizon,
        category="trainmedic/",
        properties={"rulesetVersion": view.ruleset_version},
    )


def audit_log(view: AuditView, *, with_possible: bool = False) -> dict[str, Any]:
    """The defects of an environment, each at the line with the package's version; possible ones are ``open``."""
    shown = [item for item in view.defects if item.certain or with_possible][:MAX_RESULTS]
    return _log(
        rules=[defect_rule(item) for item in shown],
        results=[defect_result(item, index) for index, item in enumerate(shown)],
        problems=view.receipt.problems,
        failures=view.failures,
        horizon=view.horizon,
        category="trainmedic-audit/",
        properties={},
    )


def defect_rule(item: DefectView) -> dict[str, Any]:
    level = DEFECT_LEVELS[item.effect]
    return {
        "id": item.id,
        "name": item.id[:255],
        "shortDescription": {"text": cut(item.title)},
        "fullDescription": {"text": cut(item.title)},
        "help": {"text": cut(item.workaround or f"{item.package}{item.affected}")},
        "helpUri": item.link,
        "defaultConfiguration": {"level": level},
        "properties": {
            "tags": ["llm-training", item.effect],
            "precision": "high",
            "problem.severity": DEFECT_SEVERITY[level],
        },
    }


def defect_result(item: DefectView, index: int) -> dict[str, Any]:
    name = f"{item.id}\0{item.evidence[0].attachment if item.evidence else ''}"
    body: dict[str, Any] = {
        "ruleId": item.id,
        "ruleIndex": index,
        "kind": "fail" if item.certain else "open",
        "level": DEFECT_LEVELS[item.effect] if item.certain else "none",
        "message": {"text": f"{item.package} {item.version}: {item.title} ({item.affected})"},
        "partialFingerprints": {
            "primaryLocationLineHash": hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()[:16] + ":1"
        },
    }
    places = [span for span in item.evidence if span.attachment is not None]
    if item.certain and places:
        body["locations"] = [{"physicalLocation": location(places[0])}]
        body["relatedLocations"] = [
            {"id": number, "physicalLocation": location(span)} for number, span in enumerate(places[1:], start=1)
        ]
    return body


def _log(
    rules: list[dict[str, Any]],
    results: list[dict[str, Any]],
    problems: Sequence[ProblemView],
    failures: Sequence[str],
    horizon: Sequence[HorizonView],
    category: str,
    properties: dict[str, Any],
) -> dict[str, Any]:
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "trainmedic",
                        "version": package_version("trainmedic"),
                        "semanticVersion": package_version("trainmedic"),
                        "informationUri": INFORMATION,
                        "rules": rules,
                    }
                },
                "automationDetails": {"id": category},
                # The default counts UTF-16 units, which shifts every column after an emoji.
                "columnKind": "unicodeCodePoints",
                "invocations": [
                    {
                        "executionSuccessful": True,
                        "toolExecutionNotifications": [
                            *(notification(problem) for problem in problems),
                            *({"level": "error", "message": {"text": failure}} for failure in failures),
                            *(beyond(item) for item in horizon),
                        ],
                    }
                ],
                "results": results,
                "properties": properties,
            }
        ],
    }


def rule(item: FindingView) -> dict[str, Any]:
    """A rule's description, from any finding of it."""
    return {
        "id": item.rule_id,
        "name": item.rule_id[:255],
        "shortDescription": {"text": cut(item.title)},
        "fullDescription": {"text": cut(item.title)},
        "help": {"text": cut(item.fix or item.title)},
        "defaultConfiguration": {"level": LEVELS[item.severity]},
        "properties": {
            "tags": ["llm-training"],
            # GitHub orders results by precision and severity.
            "precision": "very-high" if item.severity == "error" else "high",
            "problem.severity": PROBLEM_SEVERITY[item.severity],
        },
    }


def result(item: FindingView, index: int) -> dict[str, Any]:
    """One finding. Without a place in a file it has no location: GitHub then does not show it."""
    fired = item.status == "fired"
    message = item.message if fired else " ".join((item.message, *(missing.ask for missing in item.missing)))
    body: dict[str, Any] = {
        "ruleId": item.rule_id,
        "ruleIndex": index,
        "kind": "fail" if fired else "open",
        "level": LEVELS[item.severity] if fired else "none",
        "message": {"text": message},
        # GitHub matches alerts of two uploads by this key, so a moved line is not a new alert.
        "partialFingerprints": {"primaryLocationLineHash": fingerprint(item)},
    }
    places = [span for span in item.evidence if span.attachment is not None]
    if fired and places:
        body["locations"] = [{"physicalLocation": location(places[0])}]
        body["relatedLocations"] = [
            {"id": number, "physicalLocation": location(span)} for number, span in enumerate(places[1:], start=1)
        ]
    return body


def location(span: Span) -> dict[str, Any]:
    """A place, 1-based, end column exclusive, in code points."""
    region: dict[str, Any] = {"startLine": span.line, "startColumn": span.column, "endLine": span.end_line}
    # An empty span (a default's anchor) must still be a valid region.
    region["endColumn"] = span.end_column if span.end_line > span.line else max(span.end_column, span.column + 1)
    return {"artifactLocation": {"uri": uri(span.attachment or "")}, "region": region}


def uri(name: str) -> str:
    """A file's name as a URI: relative, or a file URI if it is absolute. Bytes that are no UTF-8 stay what they are."""
    start = "file://" if name.startswith("/") else ""
    return start + quote(name.replace("\\", "/").removeprefix("./"), safe="/-._~", errors="surrogateescape")


def fingerprint(item: FindingView) -> str:
    """Stable while the rule, the file and the offending text stay, whatever moves around them."""
    return fingerprint_of(item.rule_id, item.evidence) + ":1"


def fingerprint_of(name: str, evidence: Sequence[Span]) -> str:
    parts = [name, *(f"{span.attachment}\0{' '.join(span.text.split())}" for span in evidence[:1])]
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()[:16]


def notification(problem: ProblemView) -> dict[str, Any]:
    """Something that could not be read."""
    body: dict[str, Any] = {
        "descriptor": {"id": problem.code},
        "level": "warning",
        "message": {"text": problem.message},
    }
    if problem.evidence is not None and problem.evidence.attachment is not None:
        body["locations"] = [{"physicalLocation": location(problem.evidence)}]
    return body


def beyond(item: HorizonView) -> dict[str, Any]:
    """A release that is not known, of which a lack of results says nothing."""
    return {"descriptor": {"id": "beyond-horizon"}, "level": "note", "message": {"text": item.message}}


def cut(text: str) -> str:
    """Text within GitHub's bound for descriptions."""
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
