"""What all pages share: their header, and how their pieces of HTML and their events are made."""

from __future__ import annotations

from typing import Any

from trainmedic.ui.chat import evidence
from trainmedic.ui.chat.texts import Language
from trainmedic.ui.context import AppContext

QUIET: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
"""Every event: not in anybody's list of calls, and without the framework's own sign of work."""


def bare(script: str | None = None) -> dict[str, Any]:
    """What every piece of HTML of ours is made with: its value as it is, no style of the framework's, own events."""
    return {"apply_default_css": False, "js_on_load": script, "padding": False, "container": False}


def top(context: AppContext, language: Language, page: str) -> str:
    """The header of a page."""
    settings = context.settings
    return evidence.render(
        "top.html",
        language,
        page=page,
        other="en" if language == "zh" else "zh",
        model=(settings.model_name or "LLM") if settings.model_base_url else "",
        version=context.advisor.knowledge.cases.version,
    )
