"""The same article twice, and the article about a case we have: by shared character shingles."""

from __future__ import annotations

from collections.abc import Sequence

from trainmedic.ingest.document import Document

SHINGLE = 6
"""Code points of one shingle: a Chinese phrase, an English word or so."""
SAME = 0.6
"""Shared part of the shorter text from which two articles are one."""


def shingles(text: str) -> frozenset[str]:
    """All runs of `SHINGLE` letters and digits of a text, case and punctuation aside."""
    letters = "".join(character for character in text.lower() if character.isalnum())
    return frozenset(letters[start : start + SHINGLE] for start in range(max(0, len(letters) - SHINGLE + 1)))


def containment(left: frozenset[str], right: frozenset[str]) -> float:
    """The part of the smaller set that stands in the larger too; 0 for an empty one."""
    small = min(len(left), len(right))
    return len(left & right) / small if small else 0.0


def distinct(documents: Sequence[Document]) -> tuple[tuple[Document, ...], tuple[tuple[str, str], ...]]:
    """The articles without copies, and for each copy (its origin, the origin it copies). The longer one stays."""
    order = sorted(range(len(documents)), key=lambda n: (-len(documents[n].text), documents[n].origin))
    kept: list[int] = []
    sets: dict[int, frozenset[str]] = {}
    copies: list[tuple[str, str]] = []
    for number in order:
        sets[number] = shingles(documents[number].text)
        twin = next((other for other in kept if containment(sets[number], sets[other]) >= SAME), None)
        if twin is None:
            kept.append(number)
        else:
            copies.append((documents[number].origin, documents[twin].origin))
    return tuple(documents[number] for number in sorted(kept)), tuple(sorted(copies))
