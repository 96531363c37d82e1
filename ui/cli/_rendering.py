"""Reports and audits in the formats that programs read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainmedic.kb import plugins

if TYPE_CHECKING:
    from trainmedic.kb.model.report_view import ReportView
    from trainmedic.service.answer.schema import AuditView


def rendered(view: ReportView | AuditView, name: str, *, with_possible: bool = False) -> str:
    """The text of a format. Raises `InvalidRequest` for an unknown one."""
    if name == "json":
        from trainmedic.kb.serialization import to_json

        return to_json(view, indent=2) + "\n"
    text: str = plugins.load(plugins.RENDERERS, name)(view, with_possible=with_possible)
    return text
