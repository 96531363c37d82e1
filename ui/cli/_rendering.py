"""Reports and audits in the formats that programs read."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from trainmedic.kb import plugins

if TYPE_CHECKING:
    from trainmedic.kb.model.report_view import ReportView
    from trainmedic.service.answer.schema import AuditView

OWN = ("github", "osv", "sarif")


def rendered(view: ReportView | AuditView, name: str, *, with_possible: bool = False) -> str:
    """The text of a format. Raises `InvalidRequest` for an unknown one."""
    if name == "json":
        from trainmedic.kb.serialization import to_json

        return to_json(view, indent=2) + "\n"
    # Ours are part of the contract and need no look at what is installed.
    render = _own(name) if name in OWN else plugins.load(plugins.RENDERERS, name)
    text: str = render(view, with_possible=with_possible)
    return text


def _own(name: str) -> Any:
    return import_module(f"trainmedic.ui.present.{name}").render
