"""What is asked where the question leaves it open: "why does my run fail?" is about what the log shows. Pure."""

from __future__ import annotations

import re

from trainmedic.kb.glossary.terms import Glossary
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.parse.segment import segment
from trainmedic.kb.parse.signal_kinds import BENIGN
from trainmedic.kb.parse.source import Piece

MOST = 2
"""Signs that are put into words: those after the first two mostly follow from them."""
MESSAGE = 200
"""Code points of an exception's message."""
PASTED = frozenset({"versions", "yaml", "json", "toml", "ini", "command", "dump", "python"})
"""Kinds of stretches that are no words to anybody."""
BLOCK = 4
"""Lines from which on a stretch is pasted and not part of a sentence."""
_GUESSES = re.compile(
    r"(?:Some common causes include|There are some potential root causes)[:.][^\n]{0,400}?unexpected errors?"
)
"""What Ray lists under every worker that died, whatever the cause was: it says nothing about this run."""


def spoken(question: str, evidence: Evidence, glossary: Glossary) -> str:
    """The question without pasted blocks and Ray's guesses; where it names no symptom, with the first signs of the log
    and the root exception behind it."""
    question = _GUESSES.sub(" ", _without(question))
    if any(glossary.concepts[concept].kind == "symptom" for concept in glossary.ids(question)):
        return question
    signs = [signal for signal in evidence.signals if not signal.stated and signal.kind not in BENIGN]
    words = list(dict.fromkeys(signal.kind.replace("_", " ") for signal in signs))[:MOST]
    root = next((trace for trace in evidence.tracebacks if trace.root), None)
    if root is not None:
        words.append(f"{root.exception}: {root.message[:MESSAGE]}")
    return "\n".join(part for part in (question, *words) if part.strip())


def _without(question: str) -> str:
    """The question without listings and configurations that are pasted into it: rules read them, and their words are
    not what is asked. A line or two of options may be what the sentence is about and stay; so does everything where no
    word of the user's own is left."""
    lines = question.split("\n")
    if len(lines) == 1:
        return question  # nothing would be left beside it, and most questions are one line: read no second time
    for block in segment(Piece(source=None, text=question)):
        count = len(block.piece.text.rstrip().split("\n"))
        if block.kind in PASTED and (count >= BLOCK or block.kind == "versions"):
            first = block.piece.line - 1
            lines[first : first + count] = [""] * count
    left = "\n".join(lines)
    return left if left.strip() else question
