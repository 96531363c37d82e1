"""Text as pasted → `kb.model.evidence.Evidence`.

Pure: no disk, clock, network or environment. Never raises on user text.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.source import Limits

__all__ = ["Limits", "parse"]


def parse(question: str, attachments: Sequence[Attachment] = (), *, limits: Limits | None = None) -> Evidence:
    """Everything that a question and its attachments prove.

    Every input is masked before anything else reads it, and bounded by ``limits``. Nothing is dropped silently: what
    was not read is in the receipt.
    """
    from trainmedic.kb.parse.pipeline import (
        read_all,
    )  # here: a reader alone must not load all the others and the catalogues

    return read_all(question, attachments, limits or Limits())
