"""Parts of the set-up that a question says are absent: "no sequence parallel", "without offload", "没开 packing". Pure.

Users who have read about a case and ask whether it is theirs use its words, and negate the one that matters.
"""

from __future__ import annotations

from trainmedic.kb.glossary.terms import Glossary
from trainmedic.kb.negation import SETUP

NOT_SETUP = frozenset({"symptom", "metric", "error", "framework", "model", "concept"})
"""Kinds of concepts whose negation is not a fact about the set-up ("loss does not go down", "no error")."""


def negated_concepts(question: str, glossary: Glossary) -> frozenset[str]:
    """The concepts of the set-up (settings, components, algorithms, data, hardware) that are only ever negated."""
    negated: dict[str, bool] = {}
    previous_end = 0  # a negation reaches no further than the first concept behind it
    for match in glossary.find(question):
        floor, previous_end = previous_end, match.end
        if glossary.concepts[match.concept].kind in NOT_SETUP:
            continue
        absent = SETUP.precedes(question, match.start, floor) or SETUP.follows(question, match.end)
        negated[match.concept] = negated.get(match.concept, True) and absent
    return frozenset(concept for concept, absent in negated.items() if absent)


def stated_concepts(question: str, glossary: Glossary) -> frozenset[str]:
    """The concepts that a question names without denying them."""
    return frozenset(glossary.ids(question)) - negated_concepts(question, glossary)
