"""An API with the channel of OpenAI's protocol."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from trainmedic.service.advisor import Advisor
from trainmedic.service.answering import TemplateAnswerer, run_inline
from trainmedic.service.api.app import create_app
from trainmedic.service.settings import Settings
from trainmedic.ui.context import AppContext
from trainmedic.ui.openai import register_channel


def openai_app(advisor: Advisor, settings: Settings | None = None, **parts: Any) -> FastAPI:
    settings = settings or Settings()
    app = create_app(advisor, settings, **parts)
    answerer = TemplateAnswerer(advisor)
    register_channel(app, AppContext(settings=settings, advisor=advisor, answerer=answerer, executor=run_inline))
    return app
