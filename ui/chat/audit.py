"""Audit-log entries for requests of the pages; `ui.chat.app.Shell` adds who sent it and how it ended.

The framework's events tell it through `ui.chat.sender`.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any

NOTED = "noted"
READ = "read an answer on the page"


@dataclass(frozen=True, slots=True)
class Noted:
    """An action, and the id of what it was done to; neither is a text of the reader's."""

    action: str
    target: str = ""


def note(scope: MutableMapping[str, Any], action: str, target: str = "") -> None:
    scope.setdefault("state", {})[NOTED] = Noted(action, target)
