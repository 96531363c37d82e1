"""LangChain's `VectorStore` over faiss, with filters inside the search, without pickle, on one thread."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, overload

import faiss
import numpy as np
import numpy.typing as npt
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from trainmedic.kb.errors import StoreError

VECTORS = "vectors.faiss"
"""The file of an index with its vectors."""
Array = npt.NDArray[np.float32]
Filter = Callable[[Document], bool]

_search_parameters: Any = faiss.SearchParameters  # its fields are keywords that the stubs do not know

# One thread per process: with more, the slowest query on a busy machine gets many times slower.
faiss.omp_set_num_threads(1)


class DocumentsOnDemand(Sequence[Document]):
    """A number of documents, each made when somebody asks for one: all of an index take longer than a search."""

    def __init__(self, count: int, make: Callable[[int], Document]) -> None:
        self._count = count
        self._make = make

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, number: int) -> Document: ...

    @overload
    def __getitem__(self, number: slice) -> Sequence[Document]: ...

    def __getitem__(self, number: int | slice) -> Document | Sequence[Document]:
        places = range(self._count)[number]
        return self._make(places) if isinstance(places, int) else [self._make(place) for place in places]


def without_text(count: int) -> DocumentsOnDemand:
    """For vectors that nobody searches."""
    return DocumentsOnDemand(count, lambda number: Document(page_content=""))


class Vectors(VectorStore):
    """Normalised vectors with their documents. Scores are cosines."""

    def __init__(self, embedding: Embeddings, dimension: int, index: Any = None, documents: Sequence[Document] = ()):
        self._embedding = embedding
        self._documents = documents
        self._index = index if index is not None else faiss.IndexFlatIP(dimension)
        if self._index.d != dimension or self._index.ntotal != len(self._documents):
            raise StoreError("the vectors do not fit their documents", hint="trainmedic index build")

    @property
    def embeddings(self) -> Embeddings:
        return self._embedding

    @property
    def size(self) -> int:
        return int(self._index.ntotal)

    def rows(self) -> Array:
        """All vectors, in the order of their documents."""
        rows: Array = self._index.reconstruct_n(0, self.size)
        return rows

    @classmethod
    def of(cls, embedding: Embeddings, vectors: Array, documents: Sequence[Document]) -> Vectors:
        """A store of existing vectors, in half precision: as exact in ranking, half the memory, disk and time."""
        dimension = int(vectors.shape[1])
        index: Any = faiss.IndexScalarQuantizer(dimension, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
        index.train(vectors[:1])
        index.add(np.ascontiguousarray(vectors, np.float32))
        return cls(embedding, dimension, index, documents)

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Embed and add texts. Returns their ids."""
        new = list(texts)
        names = ids or [uuid.uuid4().hex for _ in new]
        data = metadatas or [{} for _ in new]
        if not new:
            return []
        self.delete(names)  # a text added again under its id replaces the old one
        self._index.add(np.asarray(self._embedding.embed_documents(new), np.float32))
        added = [
            Document(page_content=text, metadata=meta, id=name)
            for text, meta, name in zip(new, data, names, strict=True)
        ]
        self._documents = [*self._documents, *added]
        return names

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> Vectors:
        store = cls(embedding, len(embedding.embed_query("dimension")))
        store.add_texts(texts, metadatas, ids=ids)
        return store

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        """Remove documents by id (None: all). Unknown ids are ignored."""
        removed = None if ids is None else set(ids)
        numbers = [n for n, document in enumerate(self._documents) if removed is None or document.id in removed]
        if not numbers:
            return True
        remaining = np.setdiff1d(np.arange(self.size), numbers)
        rows = np.stack([self._index.reconstruct(int(n)) for n in remaining]) if len(remaining) else None
        self._index.reset()
        if rows is not None:
            self._index.add(np.ascontiguousarray(rows, np.float32))
        self._documents = [self._documents[n] for n in remaining]
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents of these ids, in this order; unknown ids are ignored."""
        by_id = {document.id: document for document in self._documents}
        return [by_id[name] for name in ids if name in by_id]

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        return [document for document, _ in self.similarity_search_with_score(query, k, **kwargs)]

    def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
        """The ``k`` documents nearest to a normalised vector."""
        nearest = self.nearest(np.asarray(embedding, np.float32), k, kwargs.get("filter"))
        return [document for document, _ in nearest]

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        """Cosines to LangChain's 0 to 1."""
        return lambda cosine: min(1.0, max(0.0, (cosine + 1.0) / 2.0))

    def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> list[tuple[Document, float]]:
        """The ``k`` nearest documents with their cosines. ``filter`` is a function of a document."""
        return self.nearest(np.asarray(self._embedding.embed_query(query), np.float32), k, kwargs.get("filter"))

    def nearest(self, vector: Array, k: int, accepts: Filter | None = None) -> list[tuple[Document, float]]:
        """The ``k`` documents nearest to a normalised vector, best first, ties in the order they were added."""
        numbers, scores = self.ranked(vector, k, accepts)
        return [(self._documents[n], float(s)) for n, s in zip(numbers, scores, strict=True)]

    def ranked(
        self, vector: Array, k: int, accepts: Filter | None = None
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Numbers and cosines of the ``k`` nearest vectors."""
        parameters: Any = None
        if accepts is not None:
            allowed = np.asarray([n for n, document in enumerate(self._documents) if accepts(document)], np.int64)
            if not len(allowed):
                return np.zeros(0, np.int64), np.zeros(0, np.float32)
            parameters = _search_parameters(sel=faiss.IDSelectorBatch(allowed))
        k = min(k, self.size)
        if k <= 0:
            return np.zeros(0, np.int64), np.zeros(0, np.float32)
        row = np.ascontiguousarray(vector[None, :], np.float32)
        scores, numbers = self._index.search(row, k, params=parameters)
        valid = numbers[0] >= 0  # faiss fills up with -1
        nearest, cosines = numbers[0][valid], scores[0][valid]
        order = np.lexsort((nearest, -cosines))
        return nearest[order], cosines[order]

    def save(self, path: Path) -> None:
        """Write the vectors (not the documents: they are the chunks)."""
        faiss.write_index(self._index, str(path))

    @classmethod
    def load(cls, path: Path, embedding: Embeddings, dimension: int, documents: Sequence[Document]) -> Vectors:
        """Vectors from disk. Raises `StoreError` if the file is damaged."""
        try:
            index = faiss.read_index(str(path))
        except RuntimeError as error:
            raise StoreError("the vector index cannot be read", hint="trainmedic index build") from error
        return cls(embedding, dimension, index, documents)
