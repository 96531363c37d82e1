"""The same article twice, and the article about a case we have: by shared character shingles."""

from __future__ import annotations

from collections.abc import Sequence

from trainmedic.ingest.items import Document

SHINGLE = 6
"""Code points of one shingle: a Chinese phrase, an English word or so."""
SAME = 0.6
"""Two articles are one if this part of the shorter occurs in the longer."""


def shingles(text: str) -> frozenset[str]:
    """All sequences of `SHINGLE` letters and digits of a text, ignoring case and punctuation."""
    letters = "".join(character for character in text.lower() if character.isalnum())
    return frozenset(letters[start : start + SHINGLE] for start in range(max(0, len(letters) - SHINGLE + 1)))


def containment(left: frozenset[str], right: frozenset[str]) -> float:
    """The share of the smaller set that is in the larger too; 0 if one is empty."""
    small = min(len(left), len(right))
    return len(left & right) / small if small else 0.0


def distinct(documents: Sequence[Document]) -> tuple[tuple[Document, ...], tuple[tuple[str, str], ...]]:
    """The articles without copies, and for each copy (its origin, the origin it copies). The longer one stays."""
    # Longest first: a copy is usually shortened, never extended.
    order = sorted(range(len(documents)), key=lambda n: (-len(documents[n].text), documents[n].origin))
    originals: list[int] = []
    sets: dict[int, frozenset[str]] = {}
    copies: list[tuple[str, str]] = []
    for number in order:
        sets[number] = shingles(documents[number].text)
        twin = next((other for other in originals if containment(sets[number], sets[other]) >= SAME), None)
        if twin is None:
            originals.append(number)
        else:
            copies.append((documents[number].origin, documents[twin].origin))
    return tuple(documents[number] for number in sorted(originals)), tuple(sorted(copies))
