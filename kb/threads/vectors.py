"""Vectors in one SQLite file, searched by faiss in memory: exactly up to `EXACT` vectors, beyond by an inverted file.

The inverted file is trained when a bulk of writes ends, and written beside; vectors that come later are added to it
when it is opened. What is removed stays in it until it is trained again, and is left out of what is found.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt

from trainmedic.kb.errors import StoreError

Array = npt.NDArray[np.float32]

FILE, INVERTED = "vectors.sqlite", "vectors.faiss"
EXACT = 150_000
"""Vectors up to which every one is compared: 15 ms on one core."""
LISTS = 4.0
"""Lists of the inverted file, times the square root of the number of vectors."""
PROBED = 48
"""Lists that a search looks into."""
SAMPLE = 48
"""Vectors for each list that it is trained on."""
ROUNDS = 6
STALE = 0.2
"""The share of new and removed vectors beyond which the inverted file is trained again."""
SPARE = 64
"""Neighbours beyond those wanted, for removed ones."""
READ = 20_000
"""Vectors that are read from disk at once."""
_SCHEMA = """
create table if not exists vectors (number integer primary key autoincrement, id text not null unique, vector blob);
create table if not exists removed (number integer primary key);
"""


class PassageVectors:
    """Normalised vectors by id. Safe to share between threads. Methods raise `StoreError`.

    Writes are idempotent by id, so that a killed writer is repaired by running it again; what a search returns of
    threads that are no longer there is for the caller to leave out. Several processes may use the folder; each sees
    what the others wrote at its next search.
    """

    def __init__(self, folder: Path, dimension: int, exact: int = EXACT) -> None:
        self._folder = folder
        self._dimension = dimension
        self._exact = exact
        self._lock = Lock()
        self._index: Any = None
        self._last = 0
        self._stamp = 0
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with self._connection() as connection:
                connection.executescript(_SCHEMA)
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"{folder / FILE} cannot be opened ({error})") from error

    def put(self, ids: Sequence[str], vectors: Array) -> None:
        """Add vectors (n x dimension), or replace those of the same ids."""
        with self._connection() as connection:
            _forget(connection, ids)
            rows = [(id, vector.astype(np.float16).tobytes()) for id, vector in zip(ids, vectors, strict=True)]
            connection.executemany("insert into vectors (id, vector) values (?, ?)", rows)

    def remove(self, ids: Sequence[str]) -> None:
        """Forget vectors; unknown ids are ignored."""
        with self._connection() as connection:
            _forget(connection, ids)

    def count(self) -> int:
        with self._connection() as connection:
            return int(connection.execute("select count(*) from vectors").fetchone()[0])

    def search(self, vector: Array, most: int) -> tuple[tuple[str, float], ...]:
        """The ids nearest to a normalised vector with their cosines, best first, ties by id."""
        with self._lock:
            index = self._current()
            if not index.ntotal:
                return ()
            row = np.ascontiguousarray(vector[None, :], np.float32)
            cosines, numbers = index.search(row, min(most + SPARE, index.ntotal))
        chosen = [(int(n), float(c)) for n, c in zip(numbers[0], cosines[0], strict=True) if n >= 0]
        names = self._names([number for number, _ in chosen])
        return ranked([(names[number], cosine) for number, cosine in chosen if number in names], most)

    def optimise(self) -> None:
        """Train the inverted file again if there are enough vectors, and enough of them changed."""
        size = self.count()
        if size <= self._exact:
            (self._folder / INVERTED).unlink(missing_ok=True)
            return
        with self._lock:
            index = self._opened()
            stale = self._changed_since(index) if index is not None else size
            if stale <= STALE * size:
                return
            index = self._trained(size)
            temporary = self._folder / f"{INVERTED}.{os.getpid()}.tmp"
            faiss.write_index(index, str(temporary))
            os.replace(temporary, self._folder / INVERTED)
            with self._connection() as connection:
                connection.execute("delete from removed")
            self._index = None

    def _current(self) -> Any:
        """The index with every vector that was written since."""
        path = self._folder / INVERTED
        stamp = path.stat().st_mtime_ns if path.exists() else 0
        if self._index is None or stamp != self._stamp:
            self._index = self._opened() or _flat(self._dimension)
            self._stamp = stamp
            self._last = _highest(self._index)
        for numbers, vectors in self._rows(self._last):
            self._index.add_with_ids(vectors, numbers)
            self._last = int(numbers[-1])
        return self._index

    def _opened(self) -> Any:
        """The inverted file; None if there is none, or it is damaged."""
        path = self._folder / INVERTED
        if not path.exists():
            return None
        try:
            index: Any = faiss.read_index(str(path))
        except RuntimeError:
            return None
        if index.d != self._dimension:
            return None
        index.nprobe = PROBED
        return index

    def _changed_since(self, index: Any) -> int:
        with self._connection() as connection:
            later = "select count(*) from vectors where number > ?"
            new = int(connection.execute(later, (_highest(index),)).fetchone()[0])
            return new + int(connection.execute("select count(*) from removed").fetchone()[0])

    def _trained(self, size: int) -> Any:
        lists = int(LISTS * size**0.5)
        quantizer = faiss.IndexFlatIP(self._dimension)
        index: Any = faiss.IndexIVFScalarQuantizer(
            quantizer, self._dimension, lists, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
        )
        index.cp.niter = ROUNDS
        index.cp.max_points_per_centroid = SAMPLE
        threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(os.cpu_count() or 1)  # a bulk, not a question
        try:
            index.train(self._sample(min(size, lists * SAMPLE), size))
            for numbers, vectors in self._rows(0):
                index.add_with_ids(vectors, numbers)
        finally:
            faiss.omp_set_num_threads(threads)
        return index

    def _sample(self, count: int, size: int) -> Array:
        """Vectors spread evenly over all."""
        step = max(1, size // count)
        sample = np.empty((count, self._dimension), np.float32)
        taken = 0
        with self._connection() as connection:
            found = "select vector from vectors where number % ? = 0 order by number limit ?"
            # One by one: together, what is read and what is made of it would be in memory at once.
            for taken, row in enumerate(connection.execute(found, (step, count)), start=1):
                sample[taken - 1] = np.frombuffer(row[0], np.float16)
        return sample[:taken]

    def _rows(self, after: int) -> Iterator[tuple[npt.NDArray[np.int64], Array]]:
        """The vectors with higher numbers, some at a time."""
        while True:
            with self._connection() as connection:
                found = "select number, vector from vectors where number > ? order by number limit ?"
                rows = connection.execute(found, (after, READ)).fetchall()
            if not rows:
                return
            after = rows[-1][0]
            yield np.asarray([row[0] for row in rows], np.int64), self._matrix([row[1] for row in rows])

    def _matrix(self, blobs: Sequence[bytes]) -> Array:
        return np.frombuffer(b"".join(blobs), np.float16).reshape(-1, self._dimension).astype(np.float32)

    def _names(self, numbers: Sequence[int]) -> dict[int, str]:
        with self._connection() as connection:
            marks = ",".join("?" * len(numbers))
            return dict(connection.execute(f"select number, id from vectors where number in ({marks})", numbers))

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """A connection whose block is one transaction."""
        with closing(sqlite3.connect(self._folder / FILE, timeout=30)) as connection:
            connection.execute("pragma journal_mode = wal")
            connection.execute("pragma synchronous = normal")
            with connection:
                yield connection


def _flat(dimension: int) -> Any:
    codes = faiss.ScalarQuantizer.QT_fp16
    return faiss.IndexIDMap(faiss.IndexScalarQuantizer(dimension, codes, faiss.METRIC_INNER_PRODUCT))


def _highest(index: Any) -> int:
    """The highest number in an index; numbers only grow."""
    if not index.ntotal:
        return 0
    if isinstance(index, faiss.IndexIDMap):
        return int(faiss.vector_to_array(index.id_map).max())
    lists = (index.invlists.list_size(n) for n in range(index.nlist))
    return max(int(faiss.rev_swig_ptr(index.invlists.get_ids(n), size).max()) for n, size in enumerate(lists) if size)


def _forget(connection: sqlite3.Connection, ids: Sequence[str]) -> None:
    for id in ids:
        row = connection.execute("select number from vectors where id = ?", (id,)).fetchone()
        if row is not None:
            connection.execute("insert or ignore into removed values (?)", row)
            connection.execute("delete from vectors where number = ?", row)


def ranked(found: Sequence[tuple[str, float]], most: int) -> tuple[tuple[str, float], ...]:
    """Best first, cosines equal to the sixth decimal are ties and by id."""
    return tuple(sorted(found, key=lambda item: (-round(item[1], 6), item[0]))[:most])
