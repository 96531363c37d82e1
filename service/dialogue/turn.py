"""One question of a conversation, as it is remembered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Attachment, Source
from trainmedic.kb.parse.text.condense import ROOM, condense, spread

MAX_STORED = 1_000_000
"""Code points of one text that a conversation remembers, and of a file with the blank lines of what was left out."""
MAX_READ_AGAIN = 300_000
"""Bytes of a file's lines that a conversation remembers: it is read again with each of its questions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One question of a conversation with its attachments, masked, and the outcome."""

    question: str
    attachments: tuple[Attachment, ...]
    answer_id: str
    verdict: str
    causes: tuple[str, ...]
    said: str = ""
    """The answer in short: the title of the cause on a line of its own, then a direct reply if there was one."""


def turn_of(
    question: str,
    sources: Sequence[Source] = (),
    *,
    answer_id: str = "",
    verdict: str = "",
    causes: tuple[str, ...] = (),
    said: str = "",
) -> Turn:
    """A turn of masked texts, within `MAX_STORED` and `MAX_READ_AGAIN`."""
    return Turn(
        question=question[:MAX_STORED],
        attachments=tuple(Attachment(name=source.name or "", content=_remembered(source.text)) for source in sources),
        answer_id=answer_id,
        verdict=verdict,
        causes=causes,
        said=said,
    )


def _remembered(text: str) -> str:
    if len(text) <= MAX_READ_AGAIN:
        return text
    condensed = condense((text.encode(),), ROOM.within(MAX_READ_AGAIN))
    return spread(condensed.text.decode("utf-8", "replace").split("\n"), condensed.numbers, "\n")[:MAX_STORED]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of an answer as the user reported it, in so many words."""

    answer_id: str
    helped: bool
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The stored part of a question besides its answer: ``sources`` are its own files, masked.

    ``continues``: it follows turns of a stored conversation.
    """

    evidence: Evidence
    sources: tuple[Source, ...]
    index_id: str
    owner: str
    continues: bool
    outcome: Outcome | None = None
