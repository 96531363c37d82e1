"""What one tab of a browser is at, and how it is brought back from the history."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from trainmedic.kb.model.place import Source
from trainmedic.service.history import StoredAnswer
from trainmedic.ui.chat import markdown
from trainmedic.ui.chat.follow import Follow
from trainmedic.ui.chat.texts import Language
from trainmedic.ui.chat.uploads import lines_of, source_of
from trainmedic.ui.context import AppContext

TURNS_SHOWN = 12


@dataclass(slots=True)
class Session:
    """What one browser tab is at. The history is the record; this is what the next event needs of it.

    ``messages`` are those of the chat: its own copy comes back from the browser, where anybody can change it.
    """

    conversation: str | None = None
    messages: list[dict[str, Any]] = field(default_factory=list)
    follow: tuple[Follow, ...] = ()


def said(role: str, content: str) -> dict[str, Any]:
    """One message of the chat."""
    return {"role": role, "content": content}


async def restored(
    context: AppContext, answer_id: str, session: Session, language: Language
) -> tuple[StoredAnswer, tuple[Source, ...]] | None:
    """The conversation up to an answer, from the history into ``session``.

    Returns that answer and all texts sent so far; None where it is not kept.
    """
    kept = await context.executor(lambda: context.advisor.answer(answer_id))
    if kept is None:
        return None
    session.conversation = str(kept.answer["conversation_id"])
    sources: dict[str | None, Source] = {}
    session.messages = []
    for turn in kept.turns[-TURNS_SHOWN:]:
        earlier = await context.executor(lambda turn=turn: context.advisor.answer(turn.answer_id))  # type: ignore[misc]
        files = [(each.name, lines_of(each.content)) for each in turn.attachments]
        session.messages.append(said("user", markdown.question(turn.question, files, language)))
        if earlier is not None:
            session.messages.append(said("assistant", markdown.answer(earlier.answer, language)))
        sources |= {each.name: source_of(each.name, str(each.content)) for each in turn.attachments}
        sources[None] = source_of(None, turn.question)
    return kept, tuple(sources.values())
