"""One question of a conversation, as it is remembered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Attachment, Source

MAX_STORED = 1_000_000
"""Code points of one text that a conversation remembers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One question of a conversation with its attachments, masked, and the outcome."""

    question: str
    attachments: tuple[Attachment, ...]
    answer_id: str
    verdict: str
    causes: tuple[str, ...]
    said: str = ""
    """What it was answered with: the title of the cause on a line of its own, then a direct reply if there was one."""


def turn_of(
    question: str,
    sources: Sequence[Source] = (),
    *,
    answer_id: str = "",
    verdict: str = "",
    causes: tuple[str, ...] = (),
    said: str = "",
) -> Turn:
    """A turn of masked texts, cut to `MAX_STORED`."""
    return Turn(
        question=question[:MAX_STORED],
        attachments=tuple(Attachment(name=source.name or "", content=source.text[:MAX_STORED]) for source in sources),
        answer_id=answer_id,
        verdict=verdict,
        causes=causes,
        said=said,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a user said that came of an answer, in so many words."""

    answer_id: str
    helped: bool
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is stored of a question beside its answer: ``sources`` are its own files, masked.

    ``continues``: it follows turns of a stored conversation.
    """

    evidence: Evidence
    sources: tuple[Source, ...]
    index_id: str
    owner: str
    continues: bool
    outcome: Outcome | None = None
