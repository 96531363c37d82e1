"""An answer of the past, asked again under the knowledge of then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from trainmedic.kb.errors import NotFound
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer import Answer
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.settings import Settings
from trainmedic.service.storage.history import History
from trainmedic.service.storage.memory import Memory
from trainmedic.ui.loading import load_version
from trainmedic.ui.versions import version_of_answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """``differences`` are lines on what the stored answer said otherwise."""

    answer: Answer
    version: str
    differences: tuple[str, ...]


def replay(settings: Settings, answer_id: str, version: str | None = None) -> Replayed:
    """Ask a stored answer's question again, without a model; nothing is stored.

    Raises `NotFound` if the answer is not stored or its version is not kept.
    """
    stored = History(settings.history_url).stored_answer(answer_id)
    if stored is None or not stored.turns:
        raise NotFound(f"no answer {answer_id!r}", hint="answers are stored for `history_days`")
    version = version or version_of_answer(settings, stored.answer)
    if version is None:
        raise NotFound(
            f"the version of the answer, knowledge {stored.answer.get('kb_version')} with the rules "
            f"{stored.answer.get('ruleset_version')}, is not kept any more",
            hint="`trainmedic index versions` lists those that are; --version asks under one of them",
        )
    knowledge = load_version(settings, version)
    if stored.answer.get("words_only"):
        knowledge = replace(knowledge, index=knowledge.index.without_vectors())
    *earlier, last = stored.turns
    conversation = History("sqlite://")
    for turn in earlier:
        conversation.add(str(stored.answer["conversation_id"]), turn, ())
    request = Ask(
        question=last.question,
        attachments=last.attachments,
        conversation_id=str(stored.answer["conversation_id"]) if earlier else None,
        language=stored.answer["language"],
        top_k=max(1, len(stored.answer["causes"])),
        mode="deterministic",
    )
    answer = Advisor(knowledge, parse, Memory(conversation)).prepare(request).answer
    return Replayed(answer=answer, version=knowledge.index.manifest.id, differences=_differences(stored.answer, answer))


def _differences(before: Mapping[str, Any], after: Answer) -> tuple[str, ...]:
    old = {"verdict": before["verdict"], "causes": ", ".join(cause["case_id"] for cause in before["causes"])}
    new = {"verdict": after.verdict, "causes": ", ".join(cause.case_id for cause in after.causes)}
    return tuple(f"{name}: {old[name] or '-'} then, {new[name] or '-'} now" for name in old if old[name] != new[name])
