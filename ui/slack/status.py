"""What ``/trainmedic status`` says: versions, knowledge, model, missing permissions."""

from __future__ import annotations

from importlib.metadata import version

from trainmedic.service.composition import phrases
from trainmedic.ui.context import AppContext
from trainmedic.ui.present.slack_text import escape
from trainmedic.ui.slack import words
from trainmedic.ui.slack.scopes import Identity


async def status_lines(context: AppContext, identity: Identity, language: str, how: str, running: int) -> list[str]:
    """The state of the bot and of what it answers from, in mrkdwn."""
    knowledge, said = context.advisor.knowledge, words.STATUS
    failed = len(knowledge.rules.failures) + len(knowledge.cases.failures)
    lines = [
        said["title"].get(language).format(version=version("trainmedic")),
        said["knowledge"].get(language).format(cases=len(knowledge.published), rules=len(knowledge.rules.rules)),
        said["versions"]
        .get(language)
        .format(kb=knowledge.cases.version, rules=knowledge.rules.version, index=knowledge.index.manifest.id),
        await model_line(context, language),
        said["delivery"].get(language).format(how=how, count=running - 1),
    ]
    if failed:
        lines.append(said["failed_pages"].get(language).format(count=failed))
    missing = [
        said["missing"].get(language).format(scope=f"`{scope}`", feature=words.FEATURES[scope].get(language))
        for scope in identity.missing
    ]
    return [escape(line) for line in (*lines, *(missing or [said["scopes"].get(language)]))]


async def model_line(context: AppContext, language: str) -> str:
    """Whether the language model can be asked."""
    if context.probe_model is None:
        return words.STATUS["no_model"].get(language)
    why = await context.probe_model()
    if why is None:
        return words.STATUS["model"].get(language)
    return words.STATUS["model_down"].get(language).format(why=phrases.FAILURES[why].get(language))
