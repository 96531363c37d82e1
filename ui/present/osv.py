"""The defects of an environment as OSV records. https://ossf.github.io/osv-schema/"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from trainmedic.kb.errors import InvalidRequest
from trainmedic.kb.model.report_view import ReportView
from trainmedic.service.answer.schema import AuditView, DefectView

SCHEMA_VERSION = "1.7.0"


def render(view: ReportView | AuditView, *, with_possible: bool = False) -> str:
    """Raises `InvalidRequest` for a report."""
    if not isinstance(view, AuditView):
        raise InvalidRequest("osv is a format of audits", hint="trainmedic audit --format osv")
    return json.dumps(records(view, datetime.now(UTC)), ensure_ascii=False, indent=2) + "\n"


def records(view: AuditView, modified: datetime) -> list[dict[str, Any]]:
    """One record for each defect. ``modified``, in UTC, is that of the records, which have no dates of their own."""
    return [record(item, modified) for item in view.defects]


def record(item: DefectView, modified: datetime) -> dict[str, Any]:
    # "0" stands for all releases before the fix: it is not known which one brought the defect.
    events = [{"introduced": item.introduced or "0"}]
    if item.fixed is not None:
        events.append({"fixed": item.fixed})
    body: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "id": f"x_trainmedic-{item.id}",  # x_: databases that are not registered with OSV
        "modified": modified.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "summary": item.title,
        "affected": [
            {
                "package": {"ecosystem": "PyPI", "name": item.package, "purl": f"pkg:pypi/{item.package}"},
                "ranges": [{"type": "ECOSYSTEM", "events": events}],
            }
        ],
        "references": [{"type": "FIX" if item.fixed is not None else "REPORT", "url": item.link}],
        "database_specific": {
            "effect": item.effect,
            "installed": item.version,
            "certain": item.certain,
            "doubts": list(item.doubts),
        },
    }
    if item.workaround:
        body["details"] = item.workaround
    return body
