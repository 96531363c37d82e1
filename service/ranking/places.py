"""Where a cause belongs among the mechanisms."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A mechanism and, if the cause has one, the origin there."""

    mechanism: str
    origin: str = ""
