"""A draft that begins with questions of users which nothing explains."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trainmedic.ingest.build import build
from trainmedic.ingest.document import Raw
from trainmedic.ingest.drafts.draft import Draft
from trainmedic.ingest.drafts.store import load_drafts
from trainmedic.ingest.write_up import PROBLEM
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
    parts = [f"# {title[:LONGEST_TITLE]}", f"## {PROBLEM}", *dict.fromkeys((*questions, *comments))]
    raw = Raw(origin=f"question {answer_id}", content="\n\n".join(parts), format="markdown", key=answer_id)
    build([raw], folder, lambda document: (nearest,) if nearest else (), source=SOURCE)
    drafts = (draft for draft in load_drafts(folder) if (draft.source, draft.key) == (SOURCE, answer_id))
    draft = next(drafts, None)
    if draft is None:
        raise InvalidRequest("another draft has the same text, or these questions have none that is read")
    return draft
