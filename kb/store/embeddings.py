"""Vectors by the digest of their text: no text is embedded twice by the same embedder, also if a build is killed."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np

from trainmedic.kb.errors import StoreError
from trainmedic.kb.store.embedder import Array, Embedder, Identity

FILE = "embeddings.sqlite3"
BATCH = 256
"""Texts stored at once: about a second of the default embedder, which a killed build loses at most."""
Progress = Callable[[int, int], None]
"""Called with the number of texts embedded so far and the number to embed."""


def no_progress(done: int, total: int) -> None:
    """Reports nothing."""


class EmbeddingCache:
    """The vectors that one embedder made, in a SQLite file. Several processes may use it."""

    def __init__(self, folder: Path, identity: Identity) -> None:
        self._path = folder / FILE
        self._embedder = f"{identity.name}\n{identity.digest}\n{identity.dimension}"
        self._bytes = 2 * identity.dimension

    def known(self, texts: Collection[str]) -> dict[str, Array]:
        """Those of the texts that are stored, with their vectors; none if the file is damaged, which deletes it."""
        if not self._path.exists():
            return {}
        by_key = {_key(text): text for text in texts}
        try:
            with self._connection() as connection:
                stored = "select text, vector from vectors where embedder = ?"
                rows = connection.execute(stored, (self._embedder,)).fetchall()
        except StoreError:
            if self._path.exists():
                raise
            return {}
        return {
            by_key[key]: np.frombuffer(vector, np.float16).astype(np.float32)
            for key, vector in rows
            if key in by_key and len(vector) == self._bytes
        }

    def add(self, texts: Sequence[str], vectors: Array) -> None:
        rows = [
            (self._embedder, _key(text), vector.astype(np.float16).tobytes())
            for text, vector in zip(texts, vectors, strict=True)
        ]
        with self._connection() as connection:
            connection.executemany("insert or replace into vectors values (?, ?, ?)", rows)

    def trim(self, texts: Collection[str]) -> None:
        """Delete the vectors of other texts and embedders, once they outnumber those of ``texts``."""
        if not self._path.exists():
            return
        wanted = {(self._embedder, _key(text)) for text in texts}
        with self._connection() as connection:
            stored = set(connection.execute("select embedder, text from vectors"))
            if len(stored - wanted) > len(wanted):
                connection.executemany("delete from vectors where embedder = ? and text = ?", stored - wanted)

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """A connection whose block is one transaction."""
        try:
            with closing(sqlite3.connect(self._path, timeout=30)) as connection, connection:
                connection.execute(
                    "create table if not exists vectors"
                    " (embedder text, text blob, vector blob, primary key (embedder, text)) without rowid"
                )
                yield connection
        except sqlite3.Error as error:
            if not isinstance(error, sqlite3.OperationalError):
                self._path.unlink(missing_ok=True)
            raise StoreError(f"{self._path} cannot be used ({error})") from error


def embed(
    texts: Sequence[str], known: Mapping[str, Array], embedder: Embedder, cache: EmbeddingCache, progress: Progress
) -> Array:
    """One row for each text. Those that are not ``known`` are embedded and stored in the cache, batch by batch.

    Rows have half precision, as those of the cache and of indexes, so that the same texts always make the same index.
    """
    rows = dict(known)
    new = [text for text in dict.fromkeys(texts) if text not in rows]
    progress(0, len(new))
    for start in range(0, len(new), BATCH):
        batch = new[start : start + BATCH]
        vectors = embedder.vectors(batch).astype(np.float16).astype(np.float32)
        cache.add(batch, vectors)
        rows |= dict(zip(batch, vectors, strict=True))
        progress(start + len(batch), len(new))
    return np.stack([rows[text] for text in texts]) if texts else embedder.vectors(())


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
