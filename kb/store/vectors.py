"""Normalised vectors in faiss: filters inside the search, no pickle, one thread."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt

from trainmedic.kb.errors import StoreError

VECTORS = "vectors.faiss"
"""The file of an index with its vectors."""
COARSE_FROM = 10_000
"""Vectors from which a search compares codes of half a byte for two dimensions first, all of which fit in a core's own
cache, and then the best of them exactly."""
COMPARED = 5
"""Vectors that are compared exactly for each one that is wanted: of 80 nearest 0.2 in a thousand are missed."""
ROUNDS = 4
"""Iterations of training the codes: with more of them the same vectors are found."""
Array = npt.NDArray[np.float32]

_search_parameters: Any = faiss.SearchParameters  # its fields are keywords that the stubs do not know

# One thread per process: with more, the slowest query on a busy machine gets many times slower.
faiss.omp_set_num_threads(1)


class Vectors:
    """Normalised vectors by number. Scores are cosines."""

    def __init__(self, dimension: int, index: Any = None) -> None:
        self._index = index if index is not None else faiss.IndexFlatIP(dimension)
        if self._index.d != dimension:
            raise StoreError("the vectors have another dimension", hint="trainmedic index build")
        # What compares all of them; a part of the other where codes are compared first.
        self._exact = getattr(self._index, "refine_index", self._index)

    @property
    def size(self) -> int:
        return int(self._index.ntotal)

    def rows(self) -> Array:
        """All vectors, in order."""
        rows: Array = self._exact.reconstruct_n(0, self.size)
        return rows

    @classmethod
    def of(cls, vectors: Array) -> Vectors:
        """Existing vectors, in half precision: as exact in ranking, half the memory, disk and time. From `COARSE_FROM`
        on a search compares codes first."""
        dimension = int(vectors.shape[1])
        index: Any = faiss.IndexScalarQuantizer(dimension, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
        index.train(vectors[:1])
        if len(vectors) >= COARSE_FROM and dimension % 2 == 0:
            codes: Any = faiss.IndexPQFastScan(dimension, dimension // 2, 4, faiss.METRIC_INNER_PRODUCT)
            codes.pq.cp.niter = ROUNDS
            index = faiss.IndexRefine(codes, index)
            index.k_factor = COMPARED
            index.train(np.ascontiguousarray(vectors, np.float32))
        index.add(np.ascontiguousarray(vectors, np.float32))
        return cls(dimension, index)

    def ranked(
        self, vector: Array, k: int, among: Sequence[int] | None = None
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Numbers and cosines of the ``k`` nearest vectors, of those ``among`` if it is given."""
        parameters: Any = None
        if among is not None:
            if not len(among):
                return np.zeros(0, np.int64), np.zeros(0, np.float32)
            parameters = _search_parameters(sel=faiss.IDSelectorBatch(np.asarray(among, np.int64)))
        k = min(k, self.size)
        if k <= 0:
            return np.zeros(0, np.int64), np.zeros(0, np.float32)
        row = np.ascontiguousarray(vector[None, :], np.float32)
        index = self._exact if among is not None or k * COMPARED >= self.size else self._index
        scores, numbers = index.search(row, k, params=parameters)
        valid = numbers[0] >= 0  # faiss fills up with -1
        nearest, cosines = numbers[0][valid], scores[0][valid]
        order = np.lexsort((nearest, -cosines))
        return nearest[order], cosines[order]

    def save(self, path: Path) -> None:
        faiss.write_index(self._index, str(path))

    @classmethod
    def load(cls, path: Path, dimension: int, size: int) -> Vectors:
        """``size`` vectors from disk. Raises `StoreError` if the file is damaged or has others."""
        try:
            index = faiss.read_index(str(path))
        except RuntimeError as error:
            raise StoreError("the vector index cannot be read", hint="trainmedic index build") from error
        if index.ntotal != size:
            raise StoreError("the vectors do not fit their texts", hint="trainmedic index build")
        return cls(dimension, index)
