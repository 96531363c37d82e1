"""A report as SARIF 2.1.0, within what GitHub code scanning accepts.

https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning
"""

from __future__ import annotations

import hashlib
from importlib.metadata import version as package_version
from typing import Any
from urllib.parse import quote

from trainmedic.kb.model.place import Span
from trainmedic.service.answer import FindingView, ProblemView, ReportView

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
INFORMATION = "https://github.com/trainmedic/trainmedic"
LEVELS = {"error": "error", "warning": "warning", "info": "note"}
PROBLEM_SEVERITY = {"error": "error", "warning": "warning", "info": "recommendation"}
MAX_TEXT = 1024
MAX_RESULTS = 5_000
"""GitHub shows this many of a run's results."""


def log(view: ReportView) -> dict[str, Any]:
    """One SARIF log with one run. A finding that cannot be decided is a result of kind ``open`` without a place."""
    shown = list(view.findings[:MAX_RESULTS])
    ids = sorted({item.rule_id for item in shown})
    by_id = {item.rule_id: item for item in reversed(shown)}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "trainmedic",
                        "semanticVersion": package_version("trainmedic"),
                        "informationUri": INFORMATION,
                        "rules": [rule(by_id[rule_id]) for rule_id in ids],
                    }
                },
                "automationDetails": {"id": "trainmedic/"},
                # The default counts UTF-16 units, which shifts every column after an emoji.
                "columnKind": "unicodeCodePoints",
                "invocations": [
                    {
                        "executionSuccessful": True,
                        "toolExecutionNotifications": [
                            *(notification(problem) for problem in view.receipt.problems),
                            *({"level": "error", "message": {"text": failure}} for failure in view.failures),
                        ],
                    }
                ],
                "results": [result(item, ids.index(item.rule_id)) for item in shown],
                "properties": {"rulesetVersion": view.ruleset_version},
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
    """A file's name as a relative URI reference; the bytes of a name that is no UTF-8 stay what they are."""
    return quote(name.replace("\\", "/").removeprefix("./"), safe="/-._~", errors="surrogateescape")


def fingerprint(item: FindingView) -> str:
    """Stable while the rule, the file and the offending text stay, whatever moves around them."""
    parts = [item.rule_id, *(f"{span.attachment}\0{' '.join(span.text.split())}" for span in item.evidence[:1])]
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()[:16] + ":1"


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


def cut(text: str) -> str:
    """Text within GitHub's bound for descriptions."""
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
