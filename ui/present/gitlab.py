"""Findings in GitLab's Code Quality format: a JSON array that a merge request shows beside its changes.

https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainmedic.kb.model.place import Span
from trainmedic.kb.model.report_view import ReportView
from trainmedic.service.answer.schema import AuditView
from trainmedic.ui.present.sarif import DEFECT_LEVELS, fingerprint_of

SEVERITIES = {"error": "critical", "warning": "major", "info": "info"}
DEFECT_SEVERITIES = {"error": "critical", "warning": "major", "note": "info"}


def report(view: ReportView) -> list[dict[str, Any]]:
    """The fired findings that have a place in a file; GitLab refuses others."""
    return [
        _entry(item.rule_id, f"{item.title}: {item.message}", SEVERITIES[item.severity], place)
        for item in view.findings
        if item.status == "fired" and (place := _place(item.evidence)) is not None
    ]


def audit_report(view: AuditView, *, with_possible: bool = False) -> list[dict[str, Any]]:
    """The certain defects, each at the line with the package's version."""
    return [
        _entry(
            item.id,
            f"{item.package} {item.version}: {item.title} ({item.affected})",
            DEFECT_SEVERITIES[DEFECT_LEVELS[item.effect]],
            place,
        )
        for item in view.defects
        if (item.certain or with_possible) and (place := _place(item.evidence)) is not None
    ]


def _place(evidence: Sequence[Span]) -> Span | None:
    return next((span for span in evidence if span.attachment is not None), None)


def _entry(name: str, description: str, severity: str, place: Span) -> dict[str, Any]:
    path = (place.attachment or "").replace("\\", "/").removeprefix("./")
    return {
        "description": description,
        "check_name": name,
        "fingerprint": fingerprint_of(name, [place]),
        "severity": severity,
        "location": {"path": path, "lines": {"begin": place.line, "end": place.end_line}},
    }
