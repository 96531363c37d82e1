"""What a page tells the audit log about a request; `ui.chat.app.Shell` adds who sent it and how it ended.

The framework's events tell it themselves, for which they need the request behind them.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainmedic.service.access.gate import address_of, from_this_machine
from trainmedic.service.access.limits import client_of
from trainmedic.service.access.principals import ANYBODY, Principal

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


def owner_of(request: gr.Request | None) -> str:
    """Whose what an event asks is: a key's, a user's, else the browser's."""
    return str(scope_of(request).get("state", {}).get("owner", ""))


def owners_of(request: gr.Request | None) -> tuple[str | None, ...]:
    """Whose conversations the sender of an event may change; None: anybody's.

    What was asked without a key or a browser, as through the API, anybody on this machine may change.
    """
    if principal_of(request).may("admin"):
        return (None,)
    scope, owner = scope_of(request), owner_of(request)
    unowned = not principal_of(request).id and (not scope or from_this_machine(scope))
    return tuple(dict.fromkeys((owner, "") if unowned else (owner,)))


def limited_as(request: gr.Request | None) -> str:
    """Who an event is counted for: a key, a user, else an address."""
    scope = scope_of(request)
    return client_of(principal_of(request), address_of(scope))
