"""What is asked where the question leaves it open: "why does my run fail?" is about what the log shows. Pure."""

from __future__ import annotations

from kb.glossary.terms import Glossary
from kb.model.evidence import Evidence
from kb.parse.signal_kinds import BENIGN

MOST = 2
"""Signs that are put into words: those after the first two mostly follow from them."""
MESSAGE = 200
"""Code points of an exception's message."""


def spoken(question: str, evidence: Evidence, glossary: Glossary) -> str:
    """The question; where it names no symptom, with the first signs of the log and the root exception behind it."""
    if any(glossary.concepts[concept].kind == "symptom" for concept in glossary.ids(question)):
        return question
    signs = [signal for signal in evidence.signals if not signal.stated and signal.kind not in BENIGN]
    words = list(dict.fromkeys(signal.kind.replace("_", " ") for signal in signs))[:MOST]
    root = next((trace for trace in evidence.tracebacks if trace.root), None)
    if root is not None:
        words.append(f"{root.exception}: {root.message[:MESSAGE]}")
    return "\n".join(part for part in (question, *words) if part.strip())
