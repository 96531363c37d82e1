"""In-process memory, all bounded: answers posted, questions asked back."""

from __future__ import annotations

from dataclasses import dataclass

from trainmedic.kb.model.place import Attachment
from trainmedic.service.answer.schema import Answer

THREADS = 5_000
ANSWERS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class PostedAnswer:
    """An answer with its question and attachments, masked."""

    answer: Answer
    question: str
    attachments: tuple[Attachment, ...] = ()
