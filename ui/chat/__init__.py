"""The chat UI in the browser: Gradio pages mounted on the service. Nothing here is imported before it is used."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from trainmedic.ui.context import AppContext

if TYPE_CHECKING:
    from fastapi import FastAPI

    from trainmedic.ui.chat.app import Shell


def register_channel(app: FastAPI, context: AppContext) -> None:
    if not context.settings.pages:
        return
    from trainmedic.ui.chat import mount

    mount.attach(app, partial(make_shell, context))


def make_shell(context: AppContext) -> Shell:
    """The shell in front of the pages. Importing it takes a tenth of a second."""
    from trainmedic.ui.chat.app import Shell

    return Shell(context, load_pages)


def load_pages(context: AppContext) -> FastAPI:
    """Import the pages and make them; Gradio takes a second and a half to load."""
    from trainmedic.ui.chat.pages import make_pages

    return make_pages(context)
