"""Log lines of work that one rank does while the others wait in a collective."""

from __future__ import annotations

from trainmedic.kb.engine.log_text import first
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Span

_WORK = (
    "Running tokenizer",
    "Tokenizing",
    "Converting format",
    "Map (num_proc=",
    "Generating train split",
    "Saving model checkpoint",
    "Packing",
    "Preprocessing",
)


def single_rank_work(evidence: Evidence) -> Span | None:
    return next((span for text in _WORK if (span := first(evidence, text)) is not None), None)
