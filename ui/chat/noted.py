"""What a page tells the audit log about a request; `ui.chat.app.Shell` adds who sent it and how it ended.

The framework's events tell it themselves, for which they need the request behind them.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainmedic.service.api.access import ANYBODY, Principal

if TYPE_CHECKING:
    import gradio as gr

NOTED = "noted"
READ = "read an answer on the page"


@dataclass(frozen=True, slots=True)
class Noted:
    """What was done, and the id of what it was done to; neither is a text of the reader's."""

    action: str
    target: str = ""


def note(scope: MutableMapping[str, Any], action: str, target: str = "") -> None:
    scope.setdefault("state", {})[NOTED] = Noted(action, target)


def scope_of(request: gr.Request | None) -> Mapping[str, Any]:
    """The ASGI scope of the call behind an event; empty if there is none."""
    inner = request.request if request is not None else None
    return inner.scope if inner is not None else {}


def principal_of(request: gr.Request | None) -> Principal:
    """Who sends an event, as the shell found out."""
    principal: Principal = scope_of(request).get("state", {}).get("principal", ANYBODY)
    return principal
