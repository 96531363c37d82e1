"""A reader that a text can hold, exhaust or end; apart, because each process of a pool imports it."""

from __future__ import annotations

import os
from collections.abc import Sequence

from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse

GIBIBYTE = 1 << 30


def hostile(question: str, attachments: Sequence[Attachment] = ()) -> Evidence:
    """Reads as always, but for words that a text can choose."""
    while question == "hang":
        pass
    if question == "swallow":
        bytearray(4 * GIBIBYTE)
    if question == "die":
        os._exit(1)
    return parse(question, attachments)
