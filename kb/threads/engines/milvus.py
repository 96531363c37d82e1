"""Vectors in Milvus by langchain-milvus: a server's address, or the path of a file for Milvus Lite."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from langchain_core.embeddings import Embeddings
from langchain_milvus import Milvus
from pymilvus import MilvusException

from trainmedic.kb.errors import StoreError
from trainmedic.kb.threads.engines import Array, ranked

COLLECTION = "trainmedic_passages"
BATCH = 1_000
MAX_FOUND = 16_384
"""Most hits that Milvus returns."""


def open_engine(location: str, folder: Path, dimension: int) -> MilvusEngine:
    return MilvusEngine(location or str(folder / "milvus.db"), dimension)


class _NoEmbeddings(Embeddings):
    """The vectors come ready; the store asks only for their dimension."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [1.0] + [0.0] * (self._dimension - 1)


class MilvusEngine:
    """One collection; approximate as its index is (a flat one in Milvus Lite)."""

    def __init__(self, uri: str, dimension: int) -> None:
        try:
            self._store = Milvus(
                _NoEmbeddings(dimension),
                collection_name=COLLECTION,
                connection_args={"uri": uri},
                index_params={"metric_type": "IP", "index_type": "AUTOINDEX", "params": {}},
                search_params={"metric_type": "IP", "params": {}},
                consistency_level="Strong",
                auto_id=False,
            )
        except (MilvusException, OSError, ValueError) as error:
            raise StoreError(f"Milvus at {uri.partition('@')[2] or uri} cannot be opened") from error

    def put(self, ids: Sequence[str], vectors: Array) -> None:
        for start in range(0, len(ids), BATCH):
            chosen = list(ids[start : start + BATCH])
            self.remove(chosen)
            try:
                self._store.add_embeddings(
                    texts=[""] * len(chosen), embeddings=vectors[start : start + BATCH].tolist(), ids=chosen
                )
            except MilvusException as error:
                raise StoreError("Milvus does not take the vectors") from error

    def remove(self, ids: Sequence[str]) -> None:
        if ids and self._store.col is not None:
            try:
                self._store.delete(ids=list(ids))
            except MilvusException as error:
                raise StoreError("Milvus does not remove the vectors") from error

    def search(self, vector: Array, most: int) -> tuple[tuple[str, float], ...]:
        if self._store.col is None:
            return ()
        try:
            found = self._store.similarity_search_with_score_by_vector(vector.tolist(), k=min(most, MAX_FOUND))
        except MilvusException as error:
            raise StoreError("Milvus does not answer") from error
        return ranked([(str(document.metadata["pk"]), float(score)) for document, score in found], most)

    def count(self) -> int:
        if self._store.col is None:
            return 0
        rows = self._store.client.query(COLLECTION, filter="", output_fields=["count(*)"])
        return int(rows[0]["count(*)"])

    def optimise(self) -> None:
        """Seal what was written: in growing segments every vector is compared, ten times as slowly."""
        if self._store.col is not None:
            self._store.client.flush(COLLECTION)

    def close(self) -> None:
        self._store.client.close()
