"""Sentences that a passage says already: it has all their numbers and names, and nearly all their words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

_SPAN = re.compile(r"`+([^`]+)`+")
_NUMBER = re.compile(r"\d+(?:\.\d+)*")
_WORD = re.compile(r"[A-Za-z_][\w./-]*\w|[A-Za-z]")
_HAN = re.compile(r"[\u4e00-\u9fff]+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"(])|(?<=[。！？])\s*")
_ITEM = re.compile(r"\n(?=\s*(?:[-*]|\d+\.) )|\n\n+")
_ENDING = re.compile(r"(?:ing|edly|ed|es|s|ly|e|d)$")
_SMALL = re.compile(
    r"a|an|the|and|or|but|if|of|in|on|at|to|for|by|with|from|as|is|are|was|be|been|it|its|this|that|these|those|which|"
    r"who|so|than|then|there|where|when|while|what|how|do|does|did|has|have|had|can|may|must|will|would|also|only|one|"
    r"both|each|all|any|some|such|same|other|into|out|up|over|under|after|before|between|about|because|since|still|just|"
    r"too|very|more|most|less|least|own|they|them|their|you|your|he|she|we|us"
)
"""Words that a sentence may have beyond a passage. Those that deny are not among them."""
NEARLY = {"en": 0.85, "zh": 0.75}
"""The share of the words of a sentence (in Chinese, of its pairs of characters) that a passage must have."""

FEW = 3
"""Sentences of fewer words are restated only where they stand as they are."""


class Restated:
    """What some passages say: a sentence is restated if a single one of them has all of it."""

    def __init__(self, passages: Iterable[str]) -> None:
        self._passages = [_Passage(text) for text in passages if text.strip()]

    def covers(self, sentence: str, language: str) -> bool:
        wanted = _Passage(sentence)
        return any(wanted.is_in(passage, language) for passage in self._passages)


class _Passage:
    def __init__(self, text: str) -> None:
        self.text = text.lower()
        self.literals = {*_NUMBER.findall(text), *(word.lower() for word in _WORD.findall(text) if _is_name(word))}
        words = [word for word in _WORD.findall(self.text) if not _SMALL.fullmatch(word)]
        self.stems = {_stem(part) for word in words for part in (word, *re.split(r"[\W_]", word)) if part}
        self.words = [_stem(word) for word in words]
        self.pairs = {run[at : at + 2] for run in _HAN.findall(text) for at in range(len(run) - 1)}

    def is_in(self, other: _Passage, language: str) -> bool:
        spans = (span.strip() for span in _SPAN.findall(self.text))
        if not all(span in other.text for span in spans):
            return False
        if not all(word in other.literals or _stem(word) in other.stems for word in self.literals):
            return False
        size = len(self.text.split()) if language == "en" else len(self.pairs)
        if size < FEW:
            return size > 1 and self.text.strip(" .。") in other.text
        if language == "zh":
            return len(self.pairs & other.pairs) >= NEARLY["zh"] * len(self.pairs)
        return sum(word in other.stems for word in self.words) >= NEARLY["en"] * len(self.words)


def _is_name(word: str) -> bool:
    return any(letter.isupper() for letter in word[1:]) or not word.isalpha()


def _stem(word: str) -> str:
    return _ENDING.sub("", word) if word.isalpha() and len(word) > 3 else word


def left(texts: Mapping[str, Sequence[str]], said: Restated) -> tuple[Mapping[str, str], list[str]]:
    """What is left of texts in parallel languages where ``said`` covers the rest, by language, and what goes.

    A sentence goes only with its translation: where the numbers of sentences differ, all of them stay or go.
    """
    kept: dict[str, list[str]] = {language: [] for language in texts}
    dropped: list[str] = []
    for parallel in zip(*texts.values(), strict=True):
        items = [_items(text) for text in parallel]
        if len({tuple(map(len, listed)) for listed in items}) > 1:
            items = [[[text]] for text in parallel]
        remain: list[list[str]] = [[] for _ in texts]
        for number in range(len(items[0])):
            sentences = list(zip(*(listed[number] for listed in items), strict=True))
            goes = [all(map(said.covers, pair, texts)) for pair in sentences]
            for at, language in enumerate(texts):
                dropped += [f"{language}\t{pair[at]}" for pair, out in zip(sentences, goes, strict=True) if out]
                gap = "" if language == "zh" else " "
                remain[at].append(gap.join(pair[at] for pair, out in zip(sentences, goes, strict=True) if not out))
        for at, language in enumerate(texts):
            kept[language] += [part for part in remain[at] if part.strip()]
    notes = {language: "\n".join(parts) for language, parts in kept.items()}
    return ({} if not any(notes.values()) else notes), dropped


def _items(text: str) -> list[list[str]]:
    """Paragraphs and items of lists, each as its sentences; a text with a fenced block is one."""
    if "```" in text or "~~~" in text or "\n|" in text:
        return [[text]]
    return [[part for part in _SENTENCE.split(item.strip()) if part] for item in _ITEM.split(text) if item.strip()]
