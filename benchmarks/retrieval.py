"""Our retrieval against LangChain's stock pair (BM25Retriever + FAISS in an EnsembleRetriever), in one run.

    python -m benchmarks.retrieval [--sizes 1000 10000 100000]

Speed: the same synthetic text (Zipf-distributed words, 80 to a chunk), the same vectors, the same questions, and no
encoder on either side. Ours includes reading the question (tokens, glossary) and explaining every hit.
Quality: our own pages with every fourth symptom wording of each case left out of both indexes and used as a question;
both embed with the default encoder. The glossary was written with these cases in mind, which favours ours.
Budgets: 10 times faster at 1,000 and 10,000 chunks, 50 times at 100,000, first hit right more often.
Exit code 1 if one is missed. Needs the ``bench`` extra.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, cast

import faiss
import numpy as np
import numpy.typing as npt
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from benchmarks.table import milliseconds
from trainmedic.kb.glossary.terms import Glossary, load_glossary
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.report import Report
from trainmedic.kb.pages.case import CaseSet, load_cases
from trainmedic.kb.pages.rule import load_rules
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.store import build as store
from trainmedic.kb.store import lexical
from trainmedic.kb.store.chunks import Chunk
from trainmedic.kb.store.embedder import Embedder, Identity, OnnxEmbedder
from trainmedic.kb.store.index import Index
from trainmedic.kb.store.lexical import tokens
from trainmedic.kb.store.manifest import FORMAT, Manifest
from trainmedic.kb.store.passages import Passages, page_ids
from trainmedic.kb.store.vectors import Vectors
from trainmedic.service.dialogue.query import build_query
from trainmedic.service.ranking.retrieve import retrieve

Array = npt.NDArray[np.float32]
SPEED_BUDGETS = {1_000: 10.0, 10_000: 10.0, 100_000: 50.0}
WORDS = 30_000
CHUNK_WORDS = 80
QUESTION_WORDS = 8
DIMENSION = 384
CLUSTERS = 200
HELD_OUT = 4
TOP = 10
SYLLABLES = [c + v + e for c in "bcdfglmnprst" for v in "aeiou" for e in ("", "n", "r", "s", "x")]


class LookupEmbedder(Embeddings):
    """Returns precomputed vectors: an encoder that takes no time, the same for both sides."""

    identity = Identity(name="looked-up", dimension=DIMENSION, digest="0")

    def __init__(self, known: dict[str, Array]) -> None:
        self._known = known

    def vectors(self, texts: Sequence[str]) -> Array:
        return np.stack([self._known[text] for text in texts])

    def known_share(self, text: str) -> float:
        return 1.0

    def embed_query(self, text: str) -> list[float]:
        return [float(x) for x in self._known[text]]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


def corpus(size: int, questions: int) -> tuple[list[str], Array, list[str], Array]:
    """Chunks with vectors, and questions made of words of one chunk, with vectors near that chunk's."""
    rng = np.random.default_rng(size)
    vocabulary = np.array(["".join(rng.choice(SYLLABLES, rng.integers(2, 5))) for _ in range(WORDS)])
    weights = 1.0 / np.arange(1, WORDS + 1)
    drawn = rng.choice(WORDS, (size, CHUNK_WORDS), p=weights / weights.sum())
    texts = [" ".join(row) for row in vocabulary[drawn]]
    centres = rng.standard_normal((CLUSTERS, DIMENSION))
    vectors = unit(centres[rng.integers(0, CLUSTERS, size)] + 0.6 * rng.standard_normal((size, DIMENSION)))
    targets = rng.choice(size, questions, replace=False)
    words = [" ".join(vocabulary[rng.choice(drawn[n], QUESTION_WORDS, replace=False)]) for n in targets]
    near = unit(vectors[targets] + 0.02 * rng.standard_normal((questions, DIMENSION)))
    return texts, vectors, words, near


def unit(rows: npt.NDArray[Any]) -> Array:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def ours_over(texts: Sequence[str], vectors: Array, embedder: LookupEmbedder) -> Index:
    """Our index in memory: every chunk its own case."""
    pieces = tuple(
        Chunk(id=str(n), cases=(f"case-{n}",), part="section", language="en", text=text, embedded=text)
        for n, text in enumerate(texts)
    )
    causes = [piece.cases for piece in pieces]
    ids = page_ids(causes)
    manifest = Manifest(
        id="benchmark",
        format=FORMAT,
        embedder=embedder.identity,
        kb_version="",
        ruleset_version="",
        glossary_version="",
        chunks=len(pieces),
        cases=len(pieces),
        files=MappingProxyType({}),
    )
    return Index(
        manifest=manifest,
        chunks=pieces,
        passages=Passages(causes=causes, parts=["section"] * len(pieces), page_ids=ids),
        vectors=Vectors.of(vectors),
        lexical=lexical.build(tuple(tokens(text)) for text in texts),
        pages=lexical.build([tuple(tokens(texts[int(page_id.removeprefix("case-"))])) for page_id in ids]),
    )


def stock_over(documents: Sequence[Document], vectors: Array, embedder: Embeddings) -> Any:
    """LangChain's pair as in its documentation, with FAISS as ``from_documents`` makes it (flat, L2)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # both packages announce their deprecation at import
        from langchain_classic.retrievers import EnsembleRetriever
        from langchain_community.docstore.in_memory import InMemoryDocstore
        from langchain_community.retrievers import BM25Retriever
        from langchain_community.vectorstores import FAISS

    flat = faiss.IndexFlatL2(vectors.shape[1])
    flat.add(vectors)
    names = {n: str(n) for n in range(len(documents))}
    docstore = InMemoryDocstore({names[n]: document for n, document in enumerate(documents)})
    dense = FAISS(embedder, flat, docstore, names).as_retriever(search_kwargs={"k": TOP})
    words = BM25Retriever.from_documents(list(documents), k=TOP)
    return EnsembleRetriever(retrievers=[words, dense], weights=[0.5, 0.5])


def stock_over_pages(index: Index, embedder: Embedder) -> Any:
    """LangChain's pair over the text of our pages without the rules; ``metadata["cause"]`` names a hit's page."""
    documents = [
        Document(page_content=chunk.text, metadata={"cause": chunk.cases[0]})
        for chunk in index.chunks
        if chunk.part != "rule"
    ]
    vectors = embedder.vectors([document.page_content for document in documents])
    return stock_over(documents, vectors, cast(Embeddings, embedder))


def median_ms(call: Callable[[str], object], questions: Sequence[str]) -> float:
    """Median milliseconds of one call, after one to warm up."""
    call(questions[0])
    return statistics.median(milliseconds(partial(call, question)) for question in questions)


def speed(size: int, glossary: Glossary) -> tuple[float, float]:
    """Median milliseconds of one question: ours, and the stock pair's."""
    count = 50 if size <= 10_000 else 15
    texts, vectors, questions, near = corpus(size, count)
    known = dict(zip(questions, near, strict=True))
    embedder = LookupEmbedder(known)
    index = ours_over(texts, vectors, embedder)

    def ours(question: str) -> object:
        query = build_query(Evidence(question=question), Report(), question, glossary=glossary)
        # The synthetic words are not in the glossary, so the question itself is embedded.
        return retrieve(replace(query, embedded=question), index, embedder, top_k=TOP)

    mine = median_ms(ours, questions)
    documents = [Document(page_content=text, metadata={"n": n}) for n, text in enumerate(texts)]
    pair = stock_over(documents, vectors, embedder)
    return mine, median_ms(pair.invoke, questions)


def held_out(cases: CaseSet) -> tuple[CaseSet, list[tuple[str, str, str]]]:
    """The cases without every fourth symptom wording, and those wordings as (question, language, case)."""
    remaining: list[Case] = []
    questions: list[tuple[str, str, str]] = []
    for case in cases.published:
        symptoms: dict[str, tuple[str, ...]] = {}
        for language, wordings in case.symptoms.items():
            questions += [(text, language, case.id) for text in wordings[HELD_OUT - 1 :: HELD_OUT]]
            symptoms[language] = tuple(t for n, t in enumerate(wordings, start=1) if n % HELD_OUT)
        remaining.append(replace(case, symptoms=MappingProxyType(symptoms)))
    return replace(cases, cases=tuple(remaining), version=f"{cases.version}-held-out"), questions


def quality(glossary: Glossary) -> dict[str, tuple[int, int, int]]:
    """Language → (questions, first hit right: ours, the stock pair's)."""
    cases, questions = held_out(load_cases())
    rules = load_rules()
    embedder = OnnxEmbedder()
    known = {case.id: case for case in cases.published}
    with TemporaryDirectory() as folder:
        root = Path(folder)
        index = store.ensure(cases, rules, glossary, embedder, root, root / "none")
        pair = stock_over_pages(index, embedder)
        counts: dict[str, list[int]] = {}
        for question, language, right in questions:
            query = build_query(parse(question), Report(), question, glossary=glossary)
            hits = retrieve(query, index, embedder, top_k=TOP, cases=known)
            stock = pair.invoke(question)
            row = counts.setdefault(language, [0, 0, 0])
            row[0] += 1
            row[1] += bool(hits) and hits[0].case_id == right
            row[2] += bool(stock) and stock[0].metadata["cause"] == right
    return {language: (row[0], row[1], row[2]) for language, row in sorted(counts.items())}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.retrieval", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SPEED_BUDGETS), help="numbers of chunks")
    options = parser.parse_args(argv)
    glossary = load_glossary()
    missed = []
    print("| chunks | ours, ms | stock pair, ms | times faster | budget |\n|---|---|---|---|---|")
    for size in options.sizes:
        mine, theirs = speed(size, glossary)
        budget = SPEED_BUDGETS.get(size, 10.0)
        print(f"| {size} | {mine:.3f} | {theirs:.3f} | {theirs / mine:.1f} | {budget:.0f} |", flush=True)
        if theirs / mine < budget:
            missed.append(f"{size} chunks")
    print("\n| held-out wordings | questions | ours first | stock pair first |\n|---|---|---|---|")
    rows = quality(glossary)
    for language, (count, mine_right, theirs_right) in rows.items():
        print(f"| {language} | {count} | {mine_right / count:.3f} | {theirs_right / count:.3f} |")
    if sum(row[1] for row in rows.values()) <= sum(row[2] for row in rows.values()):
        missed.append("first hit")
    print(f"\nmissed: {', '.join(missed) or 'nothing'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
