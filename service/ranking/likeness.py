"""How alike a question and the texts of a cause are: by the meaning of its parts, and by the words of its symptoms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from trainmedic.kb.lazy import regex
from trainmedic.kb.model.case import Case
from trainmedic.kb.store.embedder import Embedder
from trainmedic.kb.store.index import Index
from trainmedic.service.dialogue.query import Query

PARTS: Mapping[str, str] = {"title": "title", "symptom": "symptom", "section": "section"}
"""The parts of a page whose meaning is compared, by the name of their feature; all others are ``rest``."""
MOST_WORDS = 3_000
RUNS = (8, 6, 4, 3, 2)
"""Lengths of the runs of words that are looked for in the question, longest first."""
_WORD = regex(r"[a-z0-9_]+|[\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """Cosines of the most alike text of each kind; and of the title and symptoms: the weight (inverse document
    frequency) of the longest run of words, of the words of one line, and their share of this line, that the question
    has too."""

    title: float = 0.0
    symptom: float = 0.0
    section: float = 0.0
    rest: float = 0.0
    run: float = 0.0
    words: float = 0.0
    share: float = 0.0


def likenesses(query: Query, index: Index, embedder: Embedder) -> Callable[[Case], Likeness]:
    """What compares one question with causes."""
    vector = np.asarray(embedder.embed_query(query.embedded), np.float32) if index.vectors.size else None
    asked = _words(f"{query.text}\n{query.paste}")[:MOST_WORDS]
    known = frozenset(asked)
    runs = {size: frozenset(zip(*(asked[start:] for start in range(size)), strict=False)) for size in RUNS}
    vocabulary, bounds, pages = index.pages.vocabulary, index.pages.bounds, index.pages.size

    def rarity(word: str) -> float:
        number = vocabulary.get(word)
        count = bounds[number + 1] - bounds[number] if number is not None else 0
        return math.log((pages + 1) / (count + 0.5))

    def of(cause: Case) -> Likeness:
        best = {"title": 0.0, "symptom": 0.0, "section": 0.0, "rest": 0.0}
        numbers = index.passages.of_cause.get(cause.id, ())
        if vector is not None and numbers:
            for number, cosine in zip(numbers, index.vectors.cosines(vector, numbers).tolist(), strict=True):
                part = PARTS.get(index.passages.parts[number], "rest")
                best[part] = max(best[part], cosine)
        longest = most = share = 0.0
        for line in _lines(cause):
            words = _words(line)
            weights = [rarity(word) for word in words]
            common = sum(weight for word, weight in zip(words, weights, strict=True) if word in known)
            most = max(most, common)
            share = max(share, common / sum(weights)) if words else share
            longest = max(longest, _longest(words, weights, runs))
        return Likeness(**best, run=longest, words=most, share=share)

    return of


def _longest(words: Sequence[str], weights: Sequence[float], runs: Mapping[int, frozenset[tuple[str, ...]]]) -> float:
    """The weight of the heaviest among the longest runs of words that the question has too."""
    for size, found in runs.items():
        starts = range(len(words) - size + 1)
        weighed = [sum(weights[n : n + size]) for n in starts if tuple(words[n : n + size]) in found]
        if weighed:
            return max(weighed)
    return 0.0


def _lines(cause: Case) -> Iterable[str]:
    for language in ("en", "zh"):
        yield cause.title.get(language)
        yield from cause.symptoms.get(language, ())


@lru_cache(maxsize=32_768)
def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.lower()))
