"""A reader that a text can hold, exhaust, end or take over; apart, because each process of a pool imports it."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tests.confined_work import taken_over
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse

GIBIBYTE = 1 << 30
HELD = "--zero_stage 2"
"""In a file, it holds the reader."""


def hostile(question: str, attachments: Sequence[Attachment] = ()) -> Evidence:
    """Reads as always, but for words that a text can choose."""
    while question == "hang" or any(HELD in str(attachment.content) for attachment in attachments):
        pass
    if question == "swallow":
        bytearray(4 * GIBIBYTE)
    if question == "die":
        os._exit(1)
    if question == "take over":
        return taken_over("pickle")
    return parse(question, attachments)
