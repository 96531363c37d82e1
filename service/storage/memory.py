"""The service's memory: conversations, their answers and the outcome. Without a history, nothing."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from trainmedic.kb.errors import Forbidden, InvalidRequest, NotFound, StoreError
from trainmedic.kb.identities import mask_identities
from trainmedic.kb.serialization import to_json_once
from trainmedic.service.answer.messages import messages
from trainmedic.service.answer.schema import Answer
from trainmedic.service.dialogue.turn import Asked, Outcome, Turn, turn_of
from trainmedic.service.storage.history import Conversation, Feedback, History, PastTurn, StoredAnswer, storable

log = logging.getLogger("trainmedic.memory")


MAX_REPLY = 600
"""Code points of a direct reply that the conversation remembers."""


class Observer(Protocol):
    """Notified once of each answer, feedback and deletion. Called from worker threads; must neither block nor raise."""

    def on_answer(self, answer: Answer) -> None:
        """An answer is complete and stored."""

    def on_feedback(self, feedback: Feedback) -> None:
        """Feedback was stored."""

    def on_deletion(self, answer_ids: Collection[str]) -> None:
        """These answers were deleted with their conversation."""


class Memory:
    """The history and those who are told of what is added to it. Safe to share between threads.

    All methods but `remember` raise `StoreError` if the database cannot be reached.
    """

    def __init__(self, history: History | None = None, observers: Sequence[Observer] = ()) -> None:
        self.history = history
        self._observers = tuple(observers)

    def turns(self, conversation_id: str, owner: str = "") -> tuple[Turn, ...]:
        """The turns of an owner's conversation that are read again; nothing for an unknown one."""
        return self.history.turns(conversation_id, owner) if self.history is not None else ()

    def answer(self, answer_id: str) -> StoredAnswer | None:
        """A stored answer with its conversation; None if it is unknown."""
        return self.history.stored_answer(answer_id) if self.history is not None else None

    def branch(self, answer_id: str, owner: str = "") -> str | None:
        """The conversation to go on with after an answer, as `History.branch` has it."""
        return self.history.branch(answer_id, owner) if self.history is not None else None

    def conversations(self, owner: str, offset: int = 0, limit: int = 50) -> tuple[Conversation, ...]:
        """An owner's conversations, the latest first."""
        return self.history.conversations(owner, offset, limit) if self.history is not None else ()

    def past_turns(self, conversation_id: str, owner: str, offset: int = 0, limit: int = 50) -> tuple[PastTurn, ...]:
        """The turns of an owner's conversation, oldest first; empty beyond its end.

        Raises `NotFound` for a conversation that is unknown or someone else's.
        """
        history = self.history
        turns = history.past_turns(conversation_id, owner, offset, limit) if history is not None else ()
        if not turns and (history is None or not history.past_turns(conversation_id, owner, limit=1)):
            raise NotFound("no such conversation")
        return turns

    def delete_conversation(self, conversation_id: str, owner: str | None) -> None:
        """Delete a conversation with everything made from it, as `History.delete` has it.

        Raises `NotFound` for one that is unknown or someone else's.
        """
        deleted = self.history.delete(conversation_id, owner) if self.history is not None else ()
        if not deleted:
            raise NotFound("no such conversation")
        for observer in self._observers:
            observer.on_deletion(deleted)

    def give_feedback(self, feedback: Feedback, owner: str | None = None) -> None:
        """Store feedback about an answer of the owner's, or with None of anyone's.

        Raises `NotFound` for an unknown answer, and `Forbidden` for someone else's.
        """
        if self.history is None:
            raise InvalidRequest("no history is kept, so feedback has nothing to refer to")
        if owner is not None and not _is_of(feedback.answer_id, owner, self.history):
            raise Forbidden("only who asked may say whether the answer helped")
        # People paste into comments too: what is stored is masked, like everything else.
        reason, comment = (mask_identities(storable(text)) for text in (feedback.reason, feedback.comment))
        masked = replace(feedback, reason=reason, comment=comment)
        self.history.give_feedback(masked)
        for observer in self._observers:
            observer.on_feedback(masked)

    def remember(self, asked: Asked, answer: Answer) -> Answer:
        """Store a question with its final answer, and notify the observers.

        Returns the answer. It says so if the database cannot be reached: whoever asks in an outage has the answer.
        """
        try:
            if self.history is not None:
                _store(self.history, asked, answer)
                self._note(self.history, asked.outcome)
        except StoreError as error:
            log.warning("an answer could not be stored: %s", error.hint)
            notice = messages("not_stored", answer.language)
            answer = replace(answer, notices=(*(n for n in answer.notices if n != notice), notice))
        for observer in self._observers:
            observer.on_answer(answer)
        return answer

    def _note(self, history: History, outcome: Outcome | None) -> None:
        """Keep what a message said that came of an answer, unless its user has voted."""
        if outcome is None or history.feedback(outcome.answer_id) is not None:
            return
        reaction = "resolved" if outcome.helped else "down"
        with suppress(NotFound):
            self.give_feedback(Feedback(answer_id=outcome.answer_id, reaction=reaction, comment=outcome.said))


def _said(answer: Answer) -> str:
    title = answer.causes[0].title if answer.causes else ""
    reply = " ".join(section.body for section in answer.sections if section.kind == "reply")
    return f"{title}\n{reply[:MAX_REPLY]}".rstrip()


def _store(history: History, asked: Asked, answer: Answer) -> None:
    turn = turn_of(
        asked.evidence.question,
        asked.sources,
        answer_id=answer.id,
        verdict=answer.verdict,
        causes=tuple(cause.case_id for cause in answer.causes),
        said=_said(answer),
    )
    history.add(
        answer.conversation_id,
        turn,
        (answer.kb_version, answer.ruleset_version, asked.index_id),
        answer=to_json_once(answer),
        owner=asked.owner,
        continues=asked.continues,
    )


def _is_of(answer_id: str, owner: str, history: History) -> bool:
    """Whether an answer is the owner's; an unknown one is no one else's."""
    stored = history.stored_answer(answer_id)
    if stored is None:
        return True
    # By the answer and not by its conversation alone: clients choose ids, and two owners may choose the same.
    conversation, offset = str(stored.answer["conversation_id"]), 0
    while turns := history.past_turns(conversation, owner, offset):
        if any(turn.answer_id == answer_id for turn in turns):
            return True
        offset += len(turns)
    return False
