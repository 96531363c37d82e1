"""BM25 over numpy postings: explainable term by term, saved as plain arrays, memory-mapped when opened."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

K1, B = 1.2, 0.6
"""The usual saturation; a little less length normalisation, because symptom lines are short by nature."""
GRAM_WEIGHT = 0.25
"""A 3-gram is a quarter of a word: several make one misspelt word."""
RARE_FIRST = 12
"""The rarest terms of a query are always scored; commoner ones only while they occur in few chunks."""
MAX_TOUCHED = 60_000
"""Postings after which the remaining, commonest terms are skipped: they hardly distinguish chunks."""
Ids = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]


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


def build(texts: Iterable[Sequence[str]]) -> Lexical:
    """The index of chunks given as token lists."""
    numbers: dict[str, int] = {}
    flat, lengths = array("i"), array("i")
    for words in texts:
        lengths.append(len(words))
        flat.extend([numbers.setdefault(word, len(numbers)) for word in words])
    size, ordered = len(lengths), sorted(numbers)
    ranks = np.empty(len(ordered), np.int64)
    ranks[[numbers[term] for term in ordered]] = np.arange(len(ordered))
    sizes = np.asarray(lengths, np.int64)
    # One number for each pair of term and chunk, so that sorting puts the postings of a term together.
    pairs = ranks[np.asarray(flat, np.int64)] * max(size, 1) + np.repeat(np.arange(size), sizes)
    postings, counts = np.unique(pairs, return_counts=True)
    terms, documents = np.divmod(postings, max(size, 1))
    frequencies = np.bincount(terms, minlength=len(ordered))
    mean = float(sizes.mean()) if size else 1.0
    norms = K1 * (1 - B + B * sizes / max(mean, 1e-9))
    weights = np.log1p((size - frequencies + 0.5) / (frequencies + 0.5))
    weights *= np.asarray([GRAM_WEIGHT if term.startswith("3:") else 1.0 for term in ordered])
    impacts = weights[terms] * counts * (K1 + 1) / (counts + norms[documents])
    return Lexical(
        vocabulary={term: index for index, term in enumerate(ordered)},
        bounds=np.concatenate(([0], np.cumsum(frequencies))).tolist(),
        documents=documents.astype(np.int32),
        impacts=impacts.astype(np.float32),
        size=size,
    )


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
