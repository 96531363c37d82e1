"""The state of one browser tab, and how it is restored from the history."""

from __future__ import annotations

from collections.abc import Sequence
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

# Each update carries all messages to the browser, so a long conversation is not redrawn in full.
TURNS_SHOWN = 12


@dataclass(slots=True)
class Session:
    """The state of one browser tab. The history is the record; this is what the next event needs of it.

    ``messages`` are kept here because the chat's own copy comes back from the browser, where it can be changed.
    """

    conversation: str | None = None
    messages: list[dict[str, Any]] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    """The id of the answer behind each message of the assistant; empty if it has none, as after a failure."""
    follow: tuple[FollowUp, ...] = ()
    language: Language = "en"
    """The language of the last answer."""
    title: str = ""
    """The page's title while its last answer is shown."""
    stopped: bool = False
    """Whether the reader has stopped the newest answer: a part of it that was on its way must not overwrite that."""
    has_evidence: bool = False
    """Whether the evidence of the newest question is on the page."""

    @property
    def answer_id(self) -> str:
        """The last answer on the page; empty if there is none."""
        return next((answer_id for answer_id in reversed(self.answers) if answer_id), "")


def chat_message(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "content": content}


@dataclass(frozen=True, slots=True)
class StoredConversation:
    """A conversation up to one answer, with all texts sent so far."""

    answer: Answer
    turns: tuple[Turn, ...]
    sources: tuple[Source, ...]


async def restored(
    context: AppContext, answer_id: str, session: Session, language: Language
) -> StoredConversation | None:
    """Restore the conversation up to an answer into ``session``; None if the answer is not stored."""
    stored = await context.executor(lambda: context.advisor.answer(answer_id))
    if stored is None:
        return None
    answer = answer_from(stored.answer)
    session.conversation = answer.conversation_id
    session.has_evidence = True
    session.messages, session.answers = [], []
    for turn in stored.turns[-TURNS_SHOWN:]:
        earlier = await context.executor(lambda turn=turn: context.advisor.answer(turn.answer_id))  # type: ignore[misc]
        files = [(file.name, lines_of(file.content)) for file in turn.attachments]
        session.messages.append(chat_message("user", markdown.question(turn.question, files, language)))
        if earlier is not None:
            session.messages.append(chat_message("assistant", markdown.answer(answer_from(earlier.answer), language)))
            session.answers.append(turn.answer_id)
    return StoredConversation(answer, stored.turns, sources_of(stored.turns))


def sources_of(turns: Sequence[Turn]) -> tuple[Source, ...]:
    """The texts of a conversation; of those with the same name the last one."""
    sources: dict[str | None, Source] = {}
    for turn in turns[-TURNS_SHOWN:]:
        sources |= {file.name: source_of(file.name, str(file.content)) for file in turn.attachments}
        sources[None] = source_of(None, turn.question)
    return tuple(sources.values())
