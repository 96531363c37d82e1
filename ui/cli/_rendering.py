"""Reports and audits in the formats that programs read."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from trainmedic.kb.errors import InvalidRequest

if TYPE_CHECKING:
    from trainmedic.kb.model.report_view import ReportView
    from trainmedic.service.answer.schema import AuditView

FORMATS = ("github", "sarif")


def rendered(view: ReportView | AuditView, name: str, *, with_possible: bool = False) -> str:
    """The text of a format. Raises `InvalidRequest` for an unknown one."""
    if name == "json":
        from trainmedic.kb.serialization import to_json

        return to_json(view, indent=2) + "\n"
    if name not in FORMATS:
        raise InvalidRequest(f"unknown format {name!r}", hint=f"one of: {', '.join(('text', 'json', *FORMATS))}")
    text: str = import_module(f"trainmedic.ui.present.{name}").render(view, with_possible=with_possible)
    return text
