"""Reports and audits in the formats that programs read."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from trainmedic.kb import plugins
from trainmedic.kb.errors import InvalidRequest

if TYPE_CHECKING:
    from trainmedic.kb.model.report_view import ReportView
    from trainmedic.service.answer.schema import AuditView

OWN = ("github", "osv", "sarif")


def rendered(view: ReportView | AuditView, name: str, *, with_possible: bool = False) -> str:
    """The text of a format. Raises `InvalidRequest` for an unknown one."""
    if name == "json":
        from trainmedic.kb.serialization import to_json

        return to_json(view, indent=2) + "\n"
    text: str = _renderer(name)(view, with_possible=with_possible)
    return text


def _renderer(name: str) -> Any:
    if name in OWN:  # part of the contract: no look at what is installed
        return import_module(f"trainmedic.ui.present.{name}").render
    known = plugins.registered(plugins.RENDERERS)
    if name not in known:
        raise InvalidRequest(f"unknown format {name!r}", hint=f"one of: {', '.join(('text', 'json', *OWN, *known))}")
    return plugins.load(plugins.RENDERERS, name)
