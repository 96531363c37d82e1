"""Options and set-up shared by the verbs that need the whole service."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable
from contextlib import aclosing

from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.schema import Answer, StepView
from trainmedic.service.configuration import known_settings, load_settings
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.settings import Settings


def settings_of(options: argparse.Namespace) -> Settings:
    """The settings of file and environment, overridden by the verb's flags."""
    return load_settings({name: getattr(options, name, None) for name in known_settings()})


def open_journal(options: argparse.Namespace) -> Callable[[str, str], None]:
    """A function that notes an action and the id of its target in the audit log, as done on the command line.

    Call it before the action, so that nothing is done that cannot be noted.
    """
    from trainmedic.service.access.audit_log import AuditEntry, AuditLog
    from trainmedic.ui.app import database_of

    journal = AuditLog(database_of(settings_of(options)))

    def note(action: str, target: str) -> None:
        journal.add(AuditEntry(who="cli", action=action, target=target, result="done"))

    return note


def advisor_of(options: argparse.Namespace, *, with_history: bool = False, at_once: bool = False) -> Advisor:
    from trainmedic.ui.app import build_advisor

    return build_advisor(settings_of(options), with_history=with_history, at_once=at_once)


def answer_of(
    options: argparse.Namespace,
    request: Ask,
    on_step: Callable[[StepView], None] | None = None,
    *,
    at_once: bool = False,
) -> Answer:
    """One answer, by the model if one is configured and ``mode`` allows it. ``on_step`` gets the steps of an agent.

    ``at_once`` is as for `ui.app.build_advisor`.
    """
    settings = settings_of(options)
    advisor = advisor_of(options, at_once=at_once)
    if not settings.model.base_url or request.mode == "deterministic":
        return advisor.ask(request)
    return asyncio.run(_model_answer(advisor, settings, request, on_step or (lambda step: None)))


async def _model_answer(
    advisor: Advisor, settings: Settings, request: Ask, on_step: Callable[[StepView], None]
) -> Answer:
    from trainmedic.service.answering import run_inline
    from trainmedic.service.diagnosis.assistant import Assistant
    from trainmedic.ui.app import build_model

    model = build_model(settings)
    try:
        assistant = Assistant(advisor, model, calibrations=settings.calibrations, role=settings.model.role)
        async with aclosing(assistant.stream(request, "", run_inline)) as parts:
            async for part in parts:
                if isinstance(part, Answer):
                    return part
                if isinstance(part, StepView):
                    on_step(part)
        raise AssertionError("a stream ends with its answer")
    finally:
        await model.aclose()
