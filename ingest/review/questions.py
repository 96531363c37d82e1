"""A draft that begins with questions of users which nothing explains."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trainmedic.ingest.drafts.build import write_drafts
from trainmedic.ingest.drafts.draft import Draft
from trainmedic.ingest.drafts.store import load_drafts
from trainmedic.ingest.drafts.write_up import problem
from trainmedic.ingest.items import Discussion, Message, masked
from trainmedic.ingest.threads.facts import facts_of
from trainmedic.kb.errors import InvalidRequest

SOURCE = "unresolved"
LONGEST_TITLE = 120


def draft_of_questions(
    folder: Path, answer_id: str, questions: Sequence[str], comments: Sequence[str] = (), nearest: str = ""
) -> Draft:
    """The draft of the questions, the same again for the same answer. The reviewer writes its cause.

    ``nearest`` is the case that is most like them, if any. Raises `InvalidRequest` if they say nothing.
    """
    title = next((line for question in questions for line in question.splitlines() if line.strip()), "").strip()
    if not title:
        raise InvalidRequest("these questions have no text")
    first, *others = dict.fromkeys((*questions, *comments))
    asked = Discussion(
        origin=f"question {answer_id}",
        key=answer_id,
        title=title[:LONGEST_TITLE],
        messages=(Message(text=first, role="reporter"), *(Message(text=text) for text in others)),
    )
    facts = facts_of(masked(asked), problem)
    read = [facts] if facts is not None else []
    write_drafts(read, folder, lambda document: (nearest,) if nearest else (), source=SOURCE)
    drafts = (draft for draft in load_drafts(folder) if (draft.source, draft.key) == (SOURCE, answer_id))
    draft = next(drafts, None)
    if draft is None:
        raise InvalidRequest("another draft has the same text, or these questions have none that is read")
    return draft
