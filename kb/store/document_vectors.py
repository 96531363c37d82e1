"""LangChain's `VectorStore` over `kb.store.vectors`: for other LangChain programs, the search needs none of it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Any, overload

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from trainmedic.kb.errors import StoreError
from trainmedic.kb.store.embedder import CachedEmbeddings
from trainmedic.kb.store.vectors import Array, Vectors

Filter = Callable[[Document], bool]
Embeddings.register(CachedEmbeddings)


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


class DocumentVectors(VectorStore):
    """Normalised vectors with their documents. Scores are cosines."""

    def __init__(self, embedding: Embeddings, vectors: Vectors, documents: Sequence[Document] = ()) -> None:
        self._embedding = embedding
        self._documents = documents
        self._vectors = vectors
        if vectors.size != len(documents):
            raise StoreError("the vectors do not fit their documents", hint="trainmedic index build")

    @property
    def embeddings(self) -> Embeddings:
        return self._embedding

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
        self._vectors.add(np.asarray(self._embedding.embed_documents(new), np.float32))
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
    ) -> DocumentVectors:
        store = cls(embedding, Vectors(len(embedding.embed_query("dimension"))))
        store.add_texts(texts, metadatas, ids=ids)
        return store

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        """Remove documents by id (None: all). Unknown ids are ignored."""
        removed = None if ids is None else set(ids)
        left = [n for n, document in enumerate(self._documents) if removed is not None and document.id not in removed]
        if len(left) < len(self._documents):
            self._vectors.keep(left)
            self._documents = [self._documents[n] for n in left]
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
        among = None if accepts is None else [n for n, document in enumerate(self._documents) if accepts(document)]
        numbers, scores = self._vectors.ranked(vector, k, among)
        return [(self._documents[n], float(s)) for n, s in zip(numbers, scores, strict=True)]
