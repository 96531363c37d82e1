"""What a question says is not so: "no sequence parallel", "without offload", "没开 packing". Pure.

Somebody who has read about a case and asks whether it is theirs uses its words, and denies the one that matters.
Only what stands right behind a denial in the same clause counts, and only where the concept is nowhere affirmed.
"""

from __future__ import annotations

import re

from trainmedic.kb.glossary.terms import Glossary

REACH = 14
"""Letters that may stand between the denial and what is denied."""
_BEFORE = re.compile(
    r"(?:\b(?:no|not|without|never|neither|nor|non)\b|n't\b|\bisn't|\bdisabled\b|\bturned off\b"
    r"|没有?|未|不是|不用|不开|无|非)[^\n,;，。；！？!?、:：]{0,14}$",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"^[^\n,;，。；！？!?、]{0,6}(?:\b(?:is|are|was) (?:off|disabled|false)\b|没开|没用|关着|关掉|都没)", re.IGNORECASE
)
_NOT_A_DENIAL = re.compile(
    r"\b(?:not only|no matter|no idea|why not|whether or not)\b|不是说|没问题|没有?明显", re.IGNORECASE
)
STANDING = frozenset({"symptom", "metric", "error", "framework", "model", "concept"})
"""Kinds of concepts whose denial is no fact about the set-up ("loss does not go down", "no error")."""


def denied(question: str, glossary: Glossary) -> frozenset[str]:
    """The concepts of the set-up (settings, components, algorithms, data, hardware) that the question denies."""
    said: dict[str, bool] = {}
    last = 0  # a denial reaches no further than the first concept behind it
    for match in glossary.find(question):
        previous, last = last, match.end
        if glossary.concepts[match.concept].kind in STANDING:
            continue
        before = question[max(previous, match.start - REACH - 12) : match.start]
        after = question[match.end : match.end + 24]
        no = bool(_BEFORE.search(before) or _AFTER.search(after)) and not _NOT_A_DENIAL.search(before)
        said[match.concept] = said.get(match.concept, True) and no
    return frozenset(concept for concept, no in said.items() if no)
