"""Where something was written in Slack."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """``thread_ts`` names the thread's first message, empty outside of one; ``direct``: a DM with the bot."""

    team: str
    channel: str
    thread_ts: str
    user: str
    direct: bool = False
