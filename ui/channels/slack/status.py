"""The answer to ``/trainmedic status``: versions, knowledge, model, missing permissions."""

from __future__ import annotations

from importlib.metadata import version

from trainmedic.service.answer.messages import messages as answer_messages
from trainmedic.ui.channels.messages import messages
from trainmedic.ui.channels.slack.scopes import Identity
from trainmedic.ui.context import AppContext


async def status_lines(context: AppContext, identity: Identity, language: str, how: str, running: int) -> list[str]:
    """The state of the bot and its knowledge, in plain text."""
    knowledge = context.advisor.knowledge
    failed = len(knowledge.rules.failures) + len(knowledge.cases.failures)
    lines = [
        messages("status.title", language, version=version("trainmedic")),
        messages("status.knowledge", language, cases=len(knowledge.case_pages), rules=len(knowledge.rules.rules)),
        messages(
            "status.versions",
            language,
            kb=knowledge.cases.version,
            rules=knowledge.rules.version,
            index=knowledge.index.manifest.id,
        ),
        await model_line(context, language),
        # This status command is itself one of the running questions.
        messages("status.delivery", language, how=how, count=running - 1),
    ]
    if failed:
        lines.append(messages("status.failed_pages", language, count=failed))
    missing = [
        messages("status.missing", language, scope=f"`{scope}`", feature=messages(f"features.{scope}", language))
        for scope in identity.missing
    ]
    return [*lines, *(missing or [messages("status.scopes", language)])]


async def model_line(context: AppContext, language: str) -> str:
    if context.probe_model is None:
        return messages("status.no_model", language)
    why = await context.probe_model()
    if why is None:
        return messages("status.model", language)
    return messages("status.model_down", language, why=answer_messages(f"failures.{why}", language))
