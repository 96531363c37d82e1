"""The text to search with. A question that names no symptom ("why does my run fail?") asks about the log. Pure."""

from __future__ import annotations

from trainmedic.kb.glossary.terms import Glossary
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.parse.logs.signal_kinds import BENIGN
from trainmedic.kb.parse.source import Piece
from trainmedic.kb.parse.text.segment import segment

MAX_SIGNALS = 2
"""Signals that are put into words: those after the first two mostly follow from them."""
MAX_MESSAGE = 200
"""Code points of an exception's message."""
LISTINGS = frozenset({"versions", "yaml", "json", "toml", "ini", "command", "dump", "python"})
"""Kinds of text that hold no words of the user's own."""
BLOCK = 4
"""Lines from which on a listing is a block of its own and not part of a sentence."""
# Ray lists these under every worker that died, whatever the cause: they say nothing about this run.
_RAY_GUESSES = regex(
    r"(?:Some common causes include|There are some potential root causes)[:.][^\n]{0,400}?unexpected errors?"
)


def query_text(question: str, evidence: Evidence, glossary: Glossary) -> str:
    """The question without pasted blocks and Ray's guesses; if it names no symptom, with the first signals of the log
    and the root exception added."""
    question = _RAY_GUESSES.sub(" ", _without_listings(question))
    if any(glossary.concepts[concept].kind == "symptom" for concept in glossary.ids(question)):
        return question
    signals = [signal for signal in evidence.signals if not signal.stated and signal.kind not in BENIGN]
    words = list(dict.fromkeys(signal.kind.replace("_", " ") for signal in signals))[:MAX_SIGNALS]
    root = next((trace for trace in evidence.tracebacks if trace.root), None)
    if root is not None:
        words.append(f"{root.exception}: {root.message[:MAX_MESSAGE]}")
    return "\n".join(part for part in (question, *words) if part.strip())


def _without_listings(question: str) -> str:
    """The question without listings and configurations: rules read them, and nobody asks about their words.

    A line or two of options may be what a sentence is about and stays; so does everything if nothing would be left.
    """
    lines = question.split("\n")
    if len(lines) == 1:
        return question  # most questions, and nothing would be left of them: segmenting is not worth its time
    for block in segment(Piece(source=None, text=question)):
        count = len(block.piece.text.rstrip().split("\n"))
        if block.kind in LISTINGS and (count >= BLOCK or block.kind == "versions"):
            first = block.piece.line - 1
            lines[first : first + count] = [""] * count
    rest = "\n".join(lines)
    return rest if rest.strip() else question
