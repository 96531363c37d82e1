"""The Gradio application: one mounted page per language, the theme, the limits. Imported in a thread."""

from __future__ import annotations

import logging
import sys
import traceback
from types import SimpleNamespace

import gradio as gr
from fastapi import FastAPI
from gradio import queueing, route_utils, routes, utils

from trainmedic.kb.trace import trace_of
from trainmedic.service.api.middleware import MAX_REQUEST
from trainmedic.service.settings import MEBIBYTE
from trainmedic.ui.chat.diagnose import DiagnosePage
from trainmedic.ui.chat.texts import HERE, LANGUAGES, path_of
from trainmedic.ui.context import AppContext

log = logging.getLogger("trainmedic.chat")
TOKENS = {
    "body_background_fill": "bg",
    "body_text_color": "text",
    "body_text_color_subdued": "text-3",
    "background_fill_primary": "surface",
    "background_fill_secondary": "sunken",
    "block_background_fill": "surface",
    "border_color_primary": "line",
    "border_color_accent": "line-2",
    "color_accent_soft": "accent-bg",
    "input_background_fill": "surface",
    "input_background_fill_focus": "surface",
    "input_border_color": "control",
    "input_border_color_focus": "accent",
    "input_placeholder_color": "text-3",
    "link_text_color": "accent",
    "link_text_color_hover": "accent",
    "link_text_color_active": "accent",
    "link_text_color_visited": "accent",
    "button_secondary_background_fill": "surface",
    "button_secondary_background_fill_hover": "sunken",
    "button_secondary_border_color": "line-2",
    "button_secondary_text_color": "text",
    "button_primary_background_fill": "accent",
    "button_primary_background_fill_hover": "accent",
    "button_primary_text_color": "surface",
    "code_background_fill": "sunken",
    "error_background_fill": "error-bg",
    "error_border_color": "error",
    "error_text_color": "error",
    "error_icon_color": "error",
    "panel_background_fill": "surface",
    "panel_border_color": "line",
}
"""Gradio's colour variables and our colours for them."""


def make_pages(context: AppContext) -> FastAPI:
    """All pages in one application, to be run within its lifespan."""
    mask_tracebacks()
    # No description of Gradio's routes: they are internal to the pages.
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    look = theme()
    limit = f"{MAX_REQUEST // MEBIBYTE}mb"
    # The shorter path comes last: a page mounted at the root answers for everything below it.
    for language in reversed(LANGUAGES):
        gr.mount_gradio_app(
            app,
            DiagnosePage(context, language).build(),
            path_of(language).rstrip("/") or "/",
            theme=look,
            footer_links=[],
            run_history=False,
            # An error message of Gradio may quote the input, unmasked.
            show_error=False,
            # Needs Node.js, and would start a second server.
            ssr_mode=False,
            mcp_server=False,
            pwa=False,
            max_file_size=limit,
        )
    return app


def mask_tracebacks() -> None:
    """Keep what exceptions say out of Gradio's tracebacks: it may be a text of someone's."""
    masked = SimpleNamespace(**{**vars(traceback), "print_exc": log_exception})
    for module in (queueing, route_utils, routes, utils):
        module.traceback = masked


def log_exception() -> None:
    error = sys.exception()
    if error is not None:
        log.error("an event of the pages failed\n%s", trace_of(error))


def theme() -> gr.themes.Base:
    """Our colours and sizes as a Gradio theme."""
    look = gr.themes.Base(
        text_size="md",
        spacing_size="md",
        radius_size="md",
        # The style sheet names the fonts, those of the reader's system: the same from the first view on.
        font="sans-serif",
        font_mono="monospace",
    )
    values = {name: f"var(--tm-{token})" for name, token in TOKENS.items()}
    both = values | {f"{name}_dark": value for name, value in values.items()}
    plain = {"block_border_width": "0px", "block_shadow": "none", "layout_gap": "0px", "block_padding": "0px"}
    look.set(**both, **plain)
    look.custom_css = (HERE / "static" / "ui.css").read_text(encoding="utf-8")
    return look
