"""How much of a claim a sentence says, and whether it says it of its own: not denied, not the other way round. Pure.

Words are weighed by how rare they are among the claims, so that a name or a number counts for more than "model".
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.resources import files
from math import fsum, log

from trainmedic.kb.glossary.terms import load_glossary
from trainmedic.kb.lazy import regex

_WORDING = tomllib.loads(files(__package__).joinpath("wording.toml").read_text(encoding="utf-8"))
_WORD = regex(r"[a-z0-9]+(?:[_.\-][a-z0-9]+)*|[\u4e00-\u9fff]+")
TRUTHS = frozenset(("true", "false", "none"))
_ENDINGS = ("ing", "ed", "es", "s", "e")
_COMMON = frozenset(_WORDING["common"]["en"])
_COMMON_ZH = frozenset(_WORDING["common"]["zh"])


def _pattern(words: Mapping[str, Iterable[str]]) -> re.Pattern[str]:
    english = "|".join(re.escape(word).replace(r"\*", "[a-z]*") for word in words["en"])
    return re.compile("|".join((rf"(?<![a-z0-9_])(?:{english})(?![a-z0-9_])", *words["zh"])), re.IGNORECASE)


_TURNS = {name: _pattern(words) for name, words in _WORDING["turns"].items()}
_DENIALS, _EXCEPTIONS = _pattern(_WORDING["denials"]), _pattern(_WORDING["exceptions"])


class Weights:
    """The weight of a word from the number of texts that have it; one that none has weighs most."""

    __slots__ = ("_counts", "_texts")

    def __init__(self, texts: Iterable[str]) -> None:
        sets = [words_of(text) for text in texts]
        self._counts = Counter(word for words in sets for word in words)
        self._texts = len(sets)

    def of(self, words: Iterable[str]) -> float:
        # Exact, so that the order of a set does not matter.
        return fsum(log((1 + self._texts) / (1 + self._counts[word])) + 0.1 for word in words)

    def coverage(self, claim: frozenset[str], sentence: frozenset[str]) -> float:
        """The share of the claim's weight that the sentence has."""
        whole = self.of(claim)
        return self.of(claim & sentence) / whole if whole else 0.0

    def likeness(self, left: frozenset[str], right: frozenset[str]) -> float:
        """The shared weight relative to both (Dice)."""
        whole = self.of(left) + self.of(right)
        return 2 * self.of(left & right) / whole if whole else 0.0


@lru_cache(maxsize=16384)
def words_of(text: str) -> frozenset[str]:
    """Stems of Latin words, names and numbers whole, pairs of Chinese characters, and the concepts of the glossary."""
    words: set[str] = {f"#{concept}" for concept in load_glossary().ids(text)}
    for word in _WORD.findall(text.casefold()):
        if word[0] >= "\u4e00":
            pairs = (word[n : n + 2] for n in range(len(word) - 1))
            words.update(pair for pair in pairs if not _COMMON_ZH.intersection(pair))
        elif word not in _COMMON:
            words.add(_stem(word))
    return frozenset(words)


def _stem(word: str) -> str:
    if word.isalpha() and word not in TRUTHS:
        return next(
            (word.removesuffix(end) for end in _ENDINGS if word.endswith(end) and len(word) > len(end) + 3), word
        )
    return word


def turns_of(text: str) -> frozenset[str]:
    """The directions of change that a text names."""
    return frozenset(name for name, pattern in _TURNS.items() if pattern.search(text))


def denies(text: str) -> bool:
    """Whether a sentence denies something or tells of an attempt that failed."""
    return _DENIALS.search(_EXCEPTIONS.sub(" ", text)) is not None


def figures_of(text: str) -> frozenset[str]:
    """The numbers, versions and truth values of a text, as `words_of` gives them; single digits say nothing."""
    return frozenset(word for word in words_of(text) if word in TRUTHS or (word[0].isdigit() and len(word) > 1))
