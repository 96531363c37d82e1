"""BM25 over numpy postings: explainable term by term, saved as plain arrays, memory-mapped when opened.

Pages and questions are cut into the same `tokens`.
"""

from __future__ import annotations

import json
import unicodedata
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from trainmedic.kb.lazy import regex

K1, B = 1.2, 0.6
"""The usual saturation; a little less length normalisation, because symptom lines are short by nature."""
GRAM_WEIGHT = 0.25
"""A 3-gram is a quarter of a word: several make one misspelt word."""
RARE_FIRST = 12
"""The rarest terms of a query are always scored; commoner ones only while they occur in few chunks."""
MAX_TOUCHED = 60_000
"""Postings after which the remaining, commonest terms are skipped: they hardly distinguish chunks."""
_WORD = regex(r"[a-z0-9][a-z0-9_.+/-]*[a-z0-9+]|[a-z0-9]")
_PART = regex(r"[a-z]+|\d+(?:\.\d+)*")
_CHINESE = regex(r"[\u3400-\u4dbf\u4e00-\u9fff]+")
MAX_CHARACTERS = 20_000
_STOP = (
    "a an and are as at be but by can do does for from had has have how i in is it its me my not of on or so that the "
    "then there this to was we were what when where which why will with you your"
)
STOP = frozenset(_STOP.split())
Ids = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.int64]


def tokens(text: str) -> Iterator[str]:
    """Words, the parts of compound names (``micro_train_batch_size``, ``flash-attn``), Chinese bigrams, and the
    3-grams of longer words, which find misspellings and have the prefix ``3:``."""
    folded = unicodedata.normalize("NFKC", text[:MAX_CHARACTERS]).lower()
    for match in _WORD.finditer(folded):
        word = match.group()
        if word in STOP:
            continue
        yield word
        parts = _PART.findall(word)
        if len(parts) > 1:
            yield from (part for part in parts if part not in STOP)
        for part in parts:
            if len(part) > 4 and part.isalpha():
                yield from (f"3:{part[start : start + 3]}" for start in range(len(part) - 2))
    for match in _CHINESE.finditer(folded):
        run = match.group()
        if len(run) == 1:
            yield run
        yield from (run[start : start + 2] for start in range(len(run) - 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexical:
    """Postings of all terms: ``bounds[t]:bounds[t + 1]`` of ``documents`` and ``impacts`` belong to term ``t``.

    An impact is the whole BM25 contribution of the term to that chunk, so that a query only adds.
    """

    vocabulary: Mapping[str, int]
    bounds: Sequence[int]
    documents: Ids
    impacts: Floats
    size: int

    def search(self, terms: Mapping[str, float], top_k: int) -> tuple[Ids, Floats]:
        """The best ``top_k`` chunks and their scores, best first, ties by number. ``terms`` maps term → weight.

        A chunk without any of the terms is not among them, however few there are.
        """
        bounds, vocabulary = self.bounds, self.vocabulary
        known = []
        for term, weight in terms.items():
            index = vocabulary.get(term)
            if index is not None:
                start, end = bounds[index], bounds[index + 1]
                known.append((end - start, start, end, weight))
        known.sort()
        documents, impacts, lengths, weights, touched = [], [], [], [], 0
        for number, (length, start, end, weight) in enumerate(known):
            if number >= RARE_FIRST and touched + length > MAX_TOUCHED:
                break
            touched += length
            documents.append(self.documents[start:end])
            impacts.append(self.impacts[start:end])
            lengths.append(length)
            weights.append(weight)
        if not documents:
            return np.zeros(0, np.int32), np.zeros(0, np.float32)
        weighted = np.concatenate(impacts) * np.repeat(np.asarray(weights, np.float32), lengths)
        return _best(np.concatenate(documents), weighted, self.size, top_k)

    def explain(
        self, terms: Mapping[str, float], documents: Sequence[int], most: int = 5
    ) -> dict[int, tuple[str, ...]]:
        """The terms behind each chunk's score, heaviest first. 3-grams only if no word matches."""
        gains = self._gains({term: weight for term, weight in terms.items() if not term.startswith("3:")}, documents)
        bare = [document for document in documents if not gains[document]]
        if bare:
            gains |= self._gains(terms, bare)
        return {
            document: tuple(term for _, term in sorted(terms_gains)[:most]) for document, terms_gains in gains.items()
        }

    def _gains(self, terms: Mapping[str, float], documents: Sequence[int]) -> dict[int, list[tuple[float, str]]]:
        """Each term's contribution to each chunk, negative so that the heaviest sorts first."""
        gains: dict[int, list[tuple[float, str]]] = {document: [] for document in documents}
        numbers = np.asarray(documents, np.int32)
        for term, weight in terms.items():
            index = self.vocabulary.get(term)
            if index is None:
                continue
            start, end = self.bounds[index], self.bounds[index + 1]
            held = self.documents[start:end]
            places = held.searchsorted(numbers)
            for place in (held.take(places, mode="clip") == numbers).nonzero()[0].tolist():
                gains[documents[place]].append((-weight * float(self.impacts[start + int(places[place])]), term))
        return gains

    def save(self, folder: Path) -> None:
        np.save(folder / "starts.npy", np.asarray(self.bounds, np.int64))
        np.save(folder / "documents.npy", self.documents)
        np.save(folder / "impacts.npy", self.impacts)
        ordered = sorted(self.vocabulary, key=lambda term: self.vocabulary[term])
        data = {"size": self.size, "terms": ordered}
        (folder / "terms.json").write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")


def _best(documents: Ids, impacts: Floats, size: int, top_k: int) -> tuple[Ids, Floats]:
    if len(documents) * 8 < size:
        # Few chunks touched: sorting them is cheaper than a whole array of scores.
        order = np.argsort(documents, kind="stable")
        documents, impacts = documents[order], impacts[order]
        first = np.concatenate(([True], documents[1:] != documents[:-1]))
        numbers = documents[first]
        scores = np.add.reduceat(impacts, np.flatnonzero(first)).astype(np.float32)
    else:
        totals = np.bincount(documents, weights=impacts, minlength=size).astype(np.float32)
        numbers = np.flatnonzero(totals).astype(np.int32)
        scores = totals[numbers]
    if len(numbers) > top_k * 4:
        best = np.argpartition(-scores, top_k * 4)[: top_k * 4]
        # Ties at the border would depend on the partition: keep all chunks that reach the border's score.
        above = scores >= scores[best].min()
        numbers, scores = numbers[above], scores[above]
    order = np.lexsort((numbers, -scores))[:top_k]
    return numbers[order].astype(np.int32), scores[order]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Texts as numbers of terms of the sorted vocabulary: text ``n`` is ``terms[bounds[n]:bounds[n + 1]]``."""

    vocabulary: Sequence[str]
    terms: Numbers
    bounds: Sequence[int]

    def index(self, sources: Sequence[int], targets: Sequence[int], size: int) -> Lexical:
        """The index of ``size`` texts made of these: text ``sources[n]`` is a part of text ``targets[n]``."""
        parts = [self.terms[self.bounds[source] : self.bounds[source + 1]] for source in sources]
        documents = np.repeat(np.asarray(targets, np.int64), [len(part) for part in parts])
        flat = np.concatenate((np.zeros(0, np.int64), *parts))
        lengths = np.bincount(documents, minlength=size)
        # One number for each pair, so that sorting puts the postings of a term together.
        pairs, counts = np.unique(flat * max(size, 1) + documents, return_counts=True)
        terms, documents = np.divmod(pairs, max(size, 1))
        frequencies = np.bincount(terms, minlength=len(self.vocabulary))
        mean = float(lengths.mean()) if size else 1.0
        norms = K1 * (1 - B + B * lengths / max(mean, 1e-9))
        weights = np.log1p((size - frequencies + 0.5) / (frequencies + 0.5))
        weights *= np.asarray([GRAM_WEIGHT if term.startswith("3:") else 1.0 for term in self.vocabulary])
        impacts = weights[terms] * counts * (K1 + 1) / (counts + norms[documents])
        return Lexical(
            vocabulary={term: index for index, term in enumerate(self.vocabulary)},
            bounds=np.concatenate(([0], np.cumsum(frequencies))).tolist(),
            documents=documents.astype(np.int32),
            impacts=impacts.astype(np.float32),
            size=size,
        )


def count(texts: Iterable[Sequence[str]]) -> Counted:
    """Texts given as token lists."""
    numbers: dict[str, int] = {}
    flat, bounds = array("i"), [0]
    for words in texts:
        flat.extend([numbers.setdefault(word, len(numbers)) for word in words])
        bounds.append(len(flat))
    ordered = sorted(numbers)
    ranks = np.empty(len(ordered), np.int64)
    ranks[[numbers[term] for term in ordered]] = np.arange(len(ordered))
    return Counted(vocabulary=ordered, terms=ranks[np.asarray(flat, np.int64)], bounds=bounds)


def build(texts: Iterable[Sequence[str]]) -> Lexical:
    """The index of texts given as token lists."""
    counted = count(texts)
    every = range(len(counted.bounds) - 1)
    return counted.index(every, every, len(every))


def load(folder: Path) -> Lexical:
    """A saved index; the postings stay on disk until a query needs them."""
    data = json.loads((folder / "terms.json").read_text(encoding="utf-8"))
    return Lexical(
        vocabulary={term: index for index, term in enumerate(data["terms"])},
        bounds=np.load(folder / "starts.npy").tolist(),
        # Plain views: slicing a memmap object costs more than adding the numbers up.
        documents=np.load(folder / "documents.npy", mmap_mode="r").view(np.ndarray),
        impacts=np.load(folder / "impacts.npy", mmap_mode="r").view(np.ndarray),
        size=data["size"],
    )
