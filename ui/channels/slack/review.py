"""A resolved conversation as a draft case for a reviewer, written under the data folder's ``review/``.

Drafts are never shown to users before a reviewer publishes them. Only masked text goes in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from trainmedic.ingest.drafts import store
from trainmedic.ingest.drafts.drafting import draft_of
from trainmedic.ingest.items import Block, Document
from trainmedic.kb.mask import mask
from trainmedic.kb.model.place import Attachment
from trainmedic.service.answer.schema import Answer
from trainmedic.ui.present.slack import plain

FOLDER = "review"
TITLE = 110
PASTED = 6_000
"""Code points of one pasted text in the draft: its end, where a log fails."""


def write_draft(
    folder: Path,
    answer: Answer,
    question: str,
    attachments: Sequence[Attachment],
    afterwards: Sequence[str],
    url: str = "",
) -> str:
    """Write the draft of one answered question, replacing an earlier one of the same answer, and return its id.

    ``afterwards`` are the messages after the answer, which often contain the real fix. Raises `OSError`.
    """
    document = Document(
        origin=f"slack {answer.id}",
        title=title_of(answer, question),
        blocks=tuple(_blocks(answer, question, attachments, afterwards)),
        language=answer.language,
        url=url,
    )
    # The id follows from the answer, so that a second click replaces the draft instead of adding one.
    identity = f"draft-slack-{answer.id[:12]}"
    draft = draft_of(document, source="slack", key=answer.id, related=[cause.case_id for cause in answer.causes[:3]])
    store.write_draft(folder, replace(draft, id=identity))
    return identity


def title_of(answer: Answer, question: str) -> str:
    """The first words of the question, else the first cause."""
    words = plain(question.split("```", 1)[0]) or (plain(answer.causes[0].title) if answer.causes else "")
    words = words or answer.id
    return words if len(words) <= TITLE else words[: TITLE - 1] + "…"


def _blocks(answer: Answer, question: str, attachments: Sequence[Attachment], afterwards: Sequence[str]) -> list[Block]:
    blocks = [Block(kind="heading", text="Symptom", level=2), Block(kind="text", text=question)]
    for item in attachments:
        content = item.content if isinstance(item.content, str) else item.content.decode("utf-8", "replace")
        blocks.append(Block(kind="text", text=f"{item.name}:"))
        blocks.append(Block(kind="code", text=mask(content).text[-PASTED:]))
    blocks.append(Block(kind="heading", text="Cause", level=2))
    blocks += [Block(kind="text", text=f"{cause.title}: {cause.cause}") for cause in answer.causes[:3]]
    blocks.append(Block(kind="heading", text="Fix", level=2))
    blocks += [Block(kind="text", text=cause.fix) for cause in answer.causes[:1]]
    for finding in answer.findings:
        if finding.status == "fired" and finding.patch:
            blocks.append(Block(kind="code", text=finding.patch))
    if afterwards:
        blocks.append(Block(kind="heading", text="How to confirm", level=2))
        blocks += [Block(kind="item", text=mask(" ".join(text.split())).text) for text in afterwards]
    return blocks
