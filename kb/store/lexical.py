"""BM25 over numpy postings: explainable term by term, saved as plain arrays, memory-mapped when opened."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

K1, B = 1.2, 0.6
"""The usual saturation; a little less length normalisation, because symptom lines are short by nature."""
GRAM_WEIGHT = 0.25
"""A 3-gram is a quarter of a word: several make one misspelt word."""
RARE_FIRST = 24
"""Terms of a query that are always scored; commoner ones only while they touch few chunks."""
MAX_TOUCHED = 60_000
"""Postings after which the remaining, commonest terms of a query are left out: they tell almost nothing."""
Ids = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexical:
    """Postings of all terms: ``starts[t]:starts[t + 1]`` of ``documents`` and ``impacts`` belong to term ``t``.

    An impact is the whole BM25 contribution of the term to that chunk, so that a query only adds.
    """

    vocabulary: Mapping[str, int]
    starts: npt.NDArray[np.int64]
    documents: Ids
    impacts: Floats
    size: int

    def search(self, terms: Mapping[str, float], top_k: int) -> tuple[Ids, Floats]:
        """The best ``top_k`` chunks and their scores, best first, ties by number. ``terms`` maps term → weight.

        A chunk without any of the terms is not among them, however few there are.
        """
        known = [(self.vocabulary[term], weight) for term, weight in terms.items() if term in self.vocabulary]
        known.sort(key=lambda item: (int(self.starts[item[0] + 1] - self.starts[item[0]]), item[0]))
        documents, impacts, touched = [], [], 0
        for number, (term, weight) in enumerate(known):
            start, end = int(self.starts[term]), int(self.starts[term + 1])
            if number >= RARE_FIRST and touched + end - start > MAX_TOUCHED:
                break
            touched += end - start
            documents.append(self.documents[start:end])
            impacts.append(self.impacts[start:end] * np.float32(weight))
        if not documents:
            return np.zeros(0, np.int32), np.zeros(0, np.float32)
        return _best(np.concatenate(documents), np.concatenate(impacts), self.size, top_k)

    def explain(self, terms: Mapping[str, float], document: int, most: int = 5) -> tuple[str, ...]:
        """The terms that gave this chunk its score, heaviest first."""
        parts = []
        for term, weight in terms.items():
            index = self.vocabulary.get(term)
            if index is None:
                continue
            start, end = int(self.starts[index]), int(self.starts[index + 1])
            place = start + int(np.searchsorted(self.documents[start:end], document))
            if place < end and int(self.documents[place]) == document:
                parts.append((-float(self.impacts[place]) * weight, term))
        return tuple(term for _, term in sorted(parts)[:most])

    def save(self, folder: Path) -> None:
        """Write the arrays and the vocabulary."""
        np.save(folder / "starts.npy", self.starts)
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
        found = documents[first]
        scores = np.add.reduceat(impacts, np.flatnonzero(first)).astype(np.float32)
    else:
        totals = np.bincount(documents, weights=impacts, minlength=size).astype(np.float32)
        found = np.flatnonzero(totals).astype(np.int32)
        scores = totals[found]
    if len(found) > top_k * 4:
        kept = np.argpartition(-scores, top_k * 4)[: top_k * 4]
        # Ties at the border would depend on the partition: keep all chunks that reach the border's score.
        found, scores = found[scores >= scores[kept].min()], scores[scores >= scores[kept].min()]
    order = np.lexsort((found, -scores))[:top_k]
    return found[order].astype(np.int32), scores[order]


def build(texts: Iterable[Sequence[str]]) -> Lexical:
    """The index of chunks given as token lists."""
    postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
    lengths = []
    for number, words in enumerate(texts):
        counts = Counter(words)
        lengths.append(len(words))
        for term, count in counts.items():
            postings[term].append((number, count))
    size = len(lengths)
    mean = (sum(lengths) / size) if size else 1.0
    norms = K1 * (1 - B + B * np.asarray(lengths, np.float64) / max(mean, 1e-9))
    ordered = sorted(postings)
    starts = np.zeros(len(ordered) + 1, np.int64)
    documents, impacts = [], []
    for index, term in enumerate(ordered):
        entries = np.asarray(postings[term], np.int64)
        idf = np.log1p((size - len(entries) + 0.5) / (len(entries) + 0.5))
        weight = idf * (GRAM_WEIGHT if term.startswith("3:") else 1.0)
        counts_of = entries[:, 1].astype(np.float64)
        impacts.append((weight * counts_of * (K1 + 1) / (counts_of + norms[entries[:, 0]])).astype(np.float32))
        documents.append(entries[:, 0].astype(np.int32))
        starts[index + 1] = starts[index] + len(entries)
    return Lexical(
        vocabulary={term: index for index, term in enumerate(ordered)},
        starts=starts,
        documents=np.concatenate(documents) if documents else np.zeros(0, np.int32),
        impacts=np.concatenate(impacts) if impacts else np.zeros(0, np.float32),
        size=size,
    )


def load(folder: Path) -> Lexical:
    """A saved index; the postings stay on disk until a query needs them."""
    data = json.loads((folder / "terms.json").read_text(encoding="utf-8"))
    return Lexical(
        vocabulary={term: index for index, term in enumerate(data["terms"])},
        starts=np.load(folder / "starts.npy"),
        documents=np.load(folder / "documents.npy", mmap_mode="r"),
        impacts=np.load(folder / "impacts.npy", mmap_mode="r"),
        size=data["size"],
    )
