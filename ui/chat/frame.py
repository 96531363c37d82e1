"""Shared by all pages: the header, and the options of HTML pieces and events."""

from __future__ import annotations

from typing import Any

from trainmedic.service.api.middleware import MAX_REQUEST
from trainmedic.service.dialogue.request import MAX_ATTACHMENTS
from trainmedic.service.settings import MEBIBYTE
from trainmedic.ui.chat import evidence
from trainmedic.ui.chat.texts import Language
from trainmedic.ui.context import AppContext

QUIET: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
"""Options of every event: not in the public API, no progress overlay."""


def html_options(script: str | None = None) -> dict[str, Any]:
    """Options of every HTML piece: no wrapper, no style of Gradio's, our own events."""
    return {"apply_default_css": False, "js_on_load": script, "padding": False, "container": False}


def header(context: AppContext, language: Language, page: str) -> str:
    settings = context.settings
    return evidence.render(
        "top.html",
        language,
        page=page,
        max_files=MAX_ATTACHMENTS,
        max_mb=MAX_REQUEST // MEBIBYTE,
        other="en" if language == "zh" else "zh",
        sign_out=settings.guarded,
        model=(settings.model.name or "LLM") if settings.model.base_url else "",
    )
