"""A team's own resolved questions as an evaluation set: what was right once must still be found.

The true cause is known from two places: an answer that its user marked as the one that resolved the run, and an
ingested thread that a published page names as its source. Nothing of either is in the question.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainmedic.kb.threads.thread import Thread
from trainmedic.service.ranking.knowledge import Knowledge
from trainmedic.service.storage.history import ConfirmedTurn
from trainmedic.ui.evaluation.causes import Item


def own_items(confirmed: Sequence[ConfirmedTurn], threads: Sequence[Thread], knowledge: Knowledge) -> tuple[Item, ...]:
    """The questions with their causes, those of conversations first. One about a cause that is no longer published, or
    whose answer named none, is left out."""
    items: list[Item] = []
    for confirmation in confirmed:
        turn = confirmation.turn
        causes = tuple(cause for cause in turn.causes[:1] if cause in knowledge.published)
        if causes:
            items.append(
                Item(
                    id=turn.answer_id,
                    question=turn.question,
                    attachments=turn.attachments,
                    verdict="answered",
                    cases=causes,
                    source="conversation",
                )
            )
    for thread in threads:
        causes = knowledge.sources.get(thread.url.partition("#")[0], ()) if thread.url else ()
        if causes:
            question = "\n".join(dict.fromkeys((thread.title, *(quote.text for quote in thread.symptom))))
            items.append(
                Item(
                    id=thread.id,
                    question=question,
                    verdict="answered",
                    cases=causes,
                    language=thread.language,
                    framework=thread.framework,
                    source="thread",
                )
            )
    return tuple(items)
