"""The state of one browser tab, and how it is restored from the history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from trainmedic.kb.model.place import Source
from trainmedic.service.answer.schema import Answer
from trainmedic.service.answering import Executor
from trainmedic.service.dialogue.turn import Turn
from trainmedic.service.storage.history import Feedback
from trainmedic.ui.chat import evidence, markdown
from trainmedic.ui.chat.follow import FollowUp, follow_ups, kept_sources
from trainmedic.ui.chat.texts import Language
from trainmedic.ui.chat.uploads import lines_of, source_of
from trainmedic.ui.context import AppContext
from trainmedic.ui.present.stored import answer_from

# Each update carries all messages to the browser, so a long conversation is not redrawn in full.
TURNS_SHOWN = 12
REASONS = ("wrong_cause", "fix_failed", "missed", "unclear")
"""Reasons why an answer did not help."""


@dataclass(slots=True)
class Session:
    """The state of one browser tab. The history is the record; this is what the next event needs of it.

    ``messages`` are kept here because the chat's own copy comes back from the browser, where it can be changed.
    """

    conversation: str | None = None
    owner: str = ""
    """Whose conversation it is: the id of the principal that sent the last event."""
    client: str = ""
    """Who that was for the limits: a key, a user, else an address."""
    messages: list[dict[str, Any]] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    """The id of the answer behind each message of the assistant; empty if it has none, as after a failure."""
    follow: tuple[FollowUp, ...] = ()
    language: Language = "en"
    """The language of the last answer."""
    title: str = ""
    """The page's title while its last answer is shown."""
    feedback: bool = False
    """Whether the last answer says anything that may have helped."""
    stopped: bool = False
    """Whether the reader has stopped the newest answer: a part of it that was on its way must not overwrite that."""
    chips_asked: int = 0
    """Events so far that drew the waiting files again."""
    chips_drawn: int = 0
    """The latest of them that was drawn."""
    own: str = ""
    """The program's own answer while a model is at it; it stays if the reader stops that."""
    has_evidence: bool = False
    """Whether the evidence of the newest question is on the page."""

    @property
    def answer_id(self) -> str:
        """The last answer on the page; empty if there is none."""
        return next((answer_id for answer_id in reversed(self.answers) if answer_id), "")


def chat_message(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "content": content}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredConversation:
    """A conversation up to one answer, with all texts sent so far.

    ``messages`` are those of its last turns; ``answers`` has the id of the answer behind each of the assistant's.
    """

    answer: Answer
    turns: tuple[Turn, ...]
    sources: tuple[Source, ...]
    messages: tuple[dict[str, Any], ...]
    answers: tuple[str, ...]


def stored_conversation(context: AppContext, answer_id: str, language: Language) -> StoredConversation | None:
    """The conversation up to an answer; None if the answer is not stored. Blocks."""
    stored = context.memory.answer(answer_id)
    if stored is None:
        return None
    messages: list[dict[str, Any]] = []
    answers: list[str] = []
    for turn in stored.turns[-TURNS_SHOWN:]:
        earlier = context.memory.answer(turn.answer_id)
        files = [(file.name, lines_of(file.content)) for file in turn.attachments]
        messages.append(chat_message("user", markdown.question(turn.question, files, language)))
        if earlier is not None:
            messages.append(chat_message("assistant", markdown.answer(answer_from(earlier.answer), language)))
            answers.append(turn.answer_id)
    return StoredConversation(
        answer=answer_from(stored.answer),
        turns=stored.turns,
        sources=sources_of(stored.turns),
        messages=tuple(messages),
        answers=tuple(answers),
    )


async def restored(
    context: AppContext, run: Executor, answer_id: str, session: Session, language: Language
) -> StoredConversation | None:
    """Restore the conversation up to an answer into ``session``; None if the answer is not stored."""
    stored = await run(lambda: stored_conversation(context, answer_id, language))
    if stored is None:
        return None
    session.conversation = stored.answer.conversation_id
    session.has_evidence = True
    session.messages, session.answers = list(stored.messages), list(stored.answers)
    return stored


def offered(context: AppContext, answer: Answer, sources: Sequence[Source], language: Language) -> tuple[FollowUp, ...]:
    """The follow-ups to an answer, whose files are among ``sources``."""
    case = context.advisor.case(answer.causes[0].case_id) if answer.causes else None
    model = bool(context.settings.model.base_url)
    return follow_ups(answer, kept_sources(sources), case, language, model=model)


def says_something(answer: Answer) -> bool:
    """Whether an answer has anything that may have helped."""
    fired = any(finding.status == "fired" for finding in answer.findings)
    return bool(answer.causes) or fired or answer.verdict in ("answered", "no_fault", "explained")


def under(
    context: AppContext,
    answer_id: str,
    conversation: str,
    language: Language,
    title: str,
    follow: Sequence[FollowUp],
    vote: Feedback | None,
    *,
    feedback: bool,
) -> str:
    """The part below an answer: its follow-ups, and with ``feedback`` whether it helped."""
    return evidence.render(
        "after.html",
        language,
        answer_id=answer_id,
        conversation=conversation,
        title=title,
        follow=follow,
        is_kept=context.memory.history is not None,
        feedback=feedback,
        vote=vote,
        reasons=REASONS,
    )


def sources_of(turns: Sequence[Turn]) -> tuple[Source, ...]:
    """The texts of a conversation; of those with the same name the last one."""
    sources: dict[str | None, Source] = {}
    for turn in turns[-TURNS_SHOWN:]:
        sources |= {file.name: source_of(file.name, str(file.content)) for file in turn.attachments}
        sources[None] = source_of(None, turn.question)
    return tuple(sources.values())
