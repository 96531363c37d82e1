"""The protocol of OpenAI's chat completions, so that any chat client can ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainmedic.ui.context import AppContext

if TYPE_CHECKING:
    from fastapi import FastAPI


def register_channel(app: FastAPI, context: AppContext) -> None:
    from trainmedic.ui.openai.routes import make_openai_router

    app.include_router(make_openai_router(context.answerer, context.executor))
