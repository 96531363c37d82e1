"""What the history tells of conversations as a whole: those left open, and how often something was seen."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Reason = Literal["not_in_kb", "need_input", "voted_down"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sightings:
    """How many conversations were about something, and when the last one was."""

    count: int
    last: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenQuestion:
    """One conversation that ended without a resolution. ``question`` is its first message, masked."""

    conversation_id: str
    answer_id: str
    question: str
    asked_at: datetime
    reason: Reason
    fingerprint: str = ""
    causes: tuple[str, ...] = ()
    comment: str = ""
