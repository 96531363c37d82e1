"""Hooks into what happened, whatever channel it came through: traces, metrics, the webhook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from trainmedic.service.answer import Answer
    from trainmedic.service.storage.history import Feedback


class Observer(Protocol):
    """Notified once of each answer, feedback and deletion. Called from worker threads; must neither block nor raise."""

    def on_answer(self, answer: Answer) -> None:
        """An answer is complete and stored."""

    def on_feedback(self, feedback: Feedback, previous: Feedback | None, answer: Mapping[str, Any]) -> None:
        """Feedback was stored. ``previous`` is the feedback that it replaces, ``answer`` the stored answer as JSON."""

    def on_deletion(self, answer_ids: Collection[str]) -> None:
        """These answers were deleted with their conversation."""
