"""Options and set-up shared by the verbs that need the whole service."""

from __future__ import annotations

import argparse
import asyncio

from service.advisor import Advisor, Ask
from service.answer import Answer
from service.settings import Settings, load_settings


def settings_of(options: argparse.Namespace) -> Settings:
    """The effective settings: the verb's flags over environment and file."""
    flags = {name: getattr(options, name, None) for name in Settings.model_fields}
    if flags.get("language") == "auto":
        flags["language"] = None
    return load_settings(flags)


def advisor_of(options: argparse.Namespace, *, with_history: bool = False) -> Advisor:
    """An advisor for one call."""
    from ui.app import build_advisor

    return build_advisor(settings_of(options), with_history=with_history)


def answer_of(options: argparse.Namespace, request: Ask) -> Answer:
    """One answer: by the model where one is configured and wanted, else by the program alone."""
    settings = settings_of(options)
    advisor = advisor_of(options)
    if not settings.model_base_url or request.mode == "deterministic":
        return advisor.ask(request)
    return asyncio.run(_written(advisor, settings, request))


async def _written(advisor: Advisor, settings: Settings, request: Ask) -> Answer:
    from service.asking import directly, whole
    from service.assistant import Assistant
    from ui.app import build_model

    model = build_model(settings)
    try:
        return await whole(Assistant(advisor, model, restate=settings.model_restate).stream(request, "", directly))
    finally:
        await model.aclose()
