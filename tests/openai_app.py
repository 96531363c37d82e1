"""An API with the channel of OpenAI's protocol."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from trainmedic.service.access.slots import Worker
from trainmedic.service.advisor import Advisor
from trainmedic.service.answering import Answerer, TemplateAnswerer
from trainmedic.service.api.app import create_app
from trainmedic.service.settings import Settings
from trainmedic.ui.context import AppContext
from trainmedic.ui.openai import register_channel


def openai_app(
    advisor: Advisor, settings: Settings | None = None, answerer: Answerer | None = None, **parts: Any
) -> FastAPI:
    settings = settings or Settings()
    answerer = answerer or TemplateAnswerer(advisor)
    worker = Worker(settings.concurrency, settings.request_timeout_s)
    app = create_app(advisor, settings, answerer=answerer, worker=worker, **parts)
    register_channel(app, AppContext(settings=settings, advisor=advisor, answerer=answerer, executor=worker.run))
    return app
