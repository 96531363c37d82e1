"""Vectors on their way into an index, found again by their text.

Every batch is a file that is renamed into place when it is complete, so a build that is killed at any moment goes on
with what it had embedded. Batches of different processes have different names and do not disturb each other.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from trainmedic.kb.store.embedder import Embedder

FOLDER = ".vectors"
BATCH = 256
"""Texts in a batch: about a second of the default embedder, which a killed build loses at most."""
Array = npt.NDArray[np.float32]
Progress = Callable[[int, int], None]
"""Called with the texts embedded so far and those to embed in all."""


def no_progress(done: int, total: int) -> None:
    """Reports nothing."""


class VectorBatches:
    """The batches of one embedder below ``root``."""

    def __init__(self, root: Path, embedder: Embedder) -> None:
        identity = f"{embedder.identity.name}\0{embedder.identity.digest}\0{embedder.identity.dimension}"
        self._folder = root / FOLDER / hashlib.sha256(identity.encode()).hexdigest()[:16]
        self._embedder = embedder

    def embed(self, texts: Sequence[str], progress: Progress = no_progress) -> dict[str, Array]:
        """Text → row for different texts; those in stored batches are not embedded again."""
        rows = self._stored(texts)
        new = [text for text in texts if text not in rows]
        if new:
            self._folder.mkdir(parents=True, exist_ok=True)
        progress(0, len(new))
        for start in range(0, len(new), BATCH):
            batch = new[start : start + BATCH]
            vectors = self._embedder.vectors(batch)
            self._store(batch, vectors)
            rows |= dict(zip(batch, vectors, strict=True))
            progress(start + len(batch), len(new))
        return rows

    def clear(self) -> None:
        """Forget the batches of this embedder: an index holds their vectors now."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _stored(self, texts: Sequence[str]) -> dict[str, Array]:
        by_key = {_key(text): text for text in texts}
        rows: dict[str, Array] = {}
        for path in sorted(self._folder.glob("*.npz")):
            try:
                with path.open("rb") as file, np.load(file, allow_pickle=False) as batch:
                    keys, vectors = batch["keys"], batch["vectors"]
            except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile):
                continue  # damaged; its texts are embedded again
            if vectors.shape == (len(keys), self._embedder.identity.dimension):
                found = ((by_key.get(key.tobytes()), row) for key, row in zip(keys, vectors, strict=True))
                rows |= {text: row for text, row in found if text is not None}
        return rows

    def _store(self, texts: Sequence[str], vectors: Array) -> None:
        keys = np.stack([np.frombuffer(_key(text), np.uint8) for text in texts])
        path = self._folder / f"{uuid.uuid4().hex}.npz"
        unfinished = path.with_suffix(".tmp")
        with unfinished.open("wb") as file:
            np.savez(file, keys=keys, vectors=vectors)
        os.replace(unfinished, path)


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
