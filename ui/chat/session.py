"""What one tab of a browser is at, and how it is brought back from the history."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from trainmedic.kb.model.place import Source
from trainmedic.service.answer import Answer
from trainmedic.service.storage.history import Turn
from trainmedic.ui.chat import markdown
from trainmedic.ui.chat.follow import FollowUp
from trainmedic.ui.chat.texts import Language
from trainmedic.ui.chat.uploads import lines_of, source_of
from trainmedic.ui.context import AppContext
from trainmedic.ui.present.stored import answer_from

TURNS_SHOWN = 12


@dataclass(slots=True)
class Session:
    """What one browser tab is at. The history is the record; this is what the next event needs of it.

    ``messages`` are those of the chat: its own copy comes back from the browser, where anybody can change it.
    """

    conversation: str | None = None
    messages: list[dict[str, Any]] = field(default_factory=list)
    follow: tuple[FollowUp, ...] = ()


def said(role: str, content: str) -> dict[str, Any]:
    """One message of the chat."""
    return {"role": role, "content": content}


@dataclass(frozen=True, slots=True)
class StoredConversation:
    """A conversation up to one answer, and all texts sent so far."""

    answer: Answer
    turns: tuple[Turn, ...]
    sources: tuple[Source, ...]


async def restored(
    context: AppContext, answer_id: str, session: Session, language: Language
) -> StoredConversation | None:
    """The conversation up to an answer, from the history into ``session``; None if the answer is not stored."""
    stored = await context.executor(lambda: context.advisor.answer(answer_id))
    if stored is None:
        return None
    answer = answer_from(stored.answer)
    session.conversation = answer.conversation_id
    sources: dict[str | None, Source] = {}
    session.messages = []
    for turn in stored.turns[-TURNS_SHOWN:]:
        earlier = await context.executor(lambda turn=turn: context.advisor.answer(turn.answer_id))  # type: ignore[misc]
        files = [(file.name, lines_of(file.content)) for file in turn.attachments]
        session.messages.append(said("user", markdown.question(turn.question, files, language)))
        if earlier is not None:
            session.messages.append(said("assistant", markdown.answer(answer_from(earlier.answer), language)))
        sources |= {file.name: source_of(file.name, str(file.content)) for file in turn.attachments}
        sources[None] = source_of(None, turn.question)
    return StoredConversation(answer, stored.turns, tuple(sources.values()))
