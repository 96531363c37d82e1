"""An index that has no vectors yet, and the vectors that other indexes have for it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import numpy as np

from trainmedic.kb.errors import StoreError
from trainmedic.kb.store.batches import Progress, VectorBatches
from trainmedic.kb.store.chunks import Chunk
from trainmedic.kb.store.earlier import CHUNKS
from trainmedic.kb.store.embedder import Array, Embedder
from trainmedic.kb.store.manifest import REBUILD, SAME_VECTORS, Manifest, read_manifest, verify
from trainmedic.kb.store.passages import read_chunks
from trainmedic.kb.store.vectors import VECTORS, Vectors

HALVES = ".words"
"""The folder of halves, in that of the indexes."""
FEW = 64
"""Texts that are embedded sooner than another index is read for them."""
log = logging.getLogger("trainmedic.index")


@dataclass(frozen=True, slots=True, kw_only=True)
class Half:
    """An index that has no vectors yet: it can be opened and searched, and `add_vectors` makes it whole.

    ``known`` is what other indexes have embedded, as far as it was read.
    """

    folder: Path
    manifest: Manifest
    chunks: tuple[Chunk, ...]
    known: Mapping[Path, Sequence[str]] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def texts(self) -> list[str]:
        """What is to be embedded of each chunk."""
        return [chunk.embedded for chunk in self.chunks]


def read_half(root: Path, name: str) -> Half:
    """What `build_words` made for the index ``name``. Raises `StoreError` if it is missing or damaged."""
    folder = root / HALVES / name
    return Half(folder=folder, manifest=verify(folder), chunks=read_chunks(folder))


def vectors_of(
    half: Half, embedder: Embedder, indexes: Iterable[Path], batches: VectorBatches, progress: Progress
) -> Array:
    """One row for each text, taken from these indexes and from stored batches if they have it."""
    texts = half.texts
    wanted = set(texts)
    rows: dict[str, Array] = {}
    for folder in indexes:
        if rows and len(wanted) - len(rows) <= FEW:
            break
        with suppress(StoreError):
            rows |= {text: row for text, row in _embedded(folder, half, embedder) if text in wanted}
    new = [text for text in dict.fromkeys(texts) if text not in rows]
    log.info("embedding %d of %d texts", len(new), len(wanted))
    rows |= batches.embed(new, progress)
    return np.stack([rows[text] for text in texts]) if texts else embedder.vectors(())


def _embedded(folder: Path, half: Half, embedder: Embedder) -> Iterable[tuple[str, Array]]:
    """The texts of an index with their vectors. Raises `StoreError` if they cannot be used."""
    manifest = verify(folder, (VECTORS,), SAME_VECTORS)
    require_embedder(manifest, embedder)
    texts = half.known.get(folder) or _texts(folder)
    vectors = Vectors.load(folder / VECTORS, manifest.embedder.dimension, len(texts))
    return zip(texts, vectors.rows(), strict=True)


def new_texts(half: Half, embedder: Embedder, indexes: Iterable[Path]) -> int:
    """How many different texts no index has a vector of."""
    new = set(half.texts)
    for folder in indexes:
        with suppress(StoreError):
            require_embedder(read_manifest(folder, SAME_VECTORS), embedder)
            new -= set(half.known.get(folder) or _texts(folder))
    return len(new)


def _texts(folder: Path) -> list[str]:
    """What is embedded of each chunk. Raises `StoreError` if the file is damaged."""
    verify(folder, (CHUNKS,), SAME_VECTORS)
    return [item["embedded"] for item in json.loads((folder / CHUNKS).read_text(encoding="utf-8"))]


def require_embedder(manifest: Manifest, embedder: Embedder) -> None:
    if manifest.embedder != embedder.identity:
        raise StoreError(
            f"the index was built with the embedder {manifest.embedder.name}, not with {embedder.identity.name}",
            hint=REBUILD,
        )
