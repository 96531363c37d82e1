"""Threads on disk: one SQLite file with their passages and the words of these (FTS5), beside it their vectors
(`kb.threads.vectors`).

Every write is one transaction, so a process that is killed at any moment loses nothing that was acknowledged and leaves
nothing half done; readers see a write as soon as it is committed, without opening the file again. Vectors are written
before their thread and removed after it: what a killed writer leaves over belongs to no thread, is never found, and is
replaced when the thread is written again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from trainmedic.kb.errors import StoreError
from trainmedic.kb.serialization import to_json
from trainmedic.kb.store.lexical import tokens
from trainmedic.kb.threads.thread import Thread, from_text
from trainmedic.kb.threads.vectors import PassageVectors

FILE = "threads.sqlite"
FORMAT = "2"
MAX_POSTINGS = 60_000
"""Passages that the words of a query may touch; its commoner words are left out beyond that."""
MOST_WORDS = 24
_SCHEMA = """
create table if not exists meta (name text primary key, value text not null);
create table if not exists threads (
    number integer primary key, id text not null unique, source text not null, key text not null, digest text not null,
    data text not null
);
create index if not exists threads_by_source on threads (source, key);
create table if not exists passages (
    number integer primary key, thread integer not null references threads (number), terms text not null
);
create index if not exists passages_by_thread on passages (thread);
create virtual table if not exists words using fts5 (
    terms, content='passages', content_rowid='number', tokenize="unicode61 remove_diacritics 0 tokenchars '_-.:/+'"
);
create virtual table if not exists vocabulary using fts5vocab (words, row);
"""
Array = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A thread with the texts of its passages and their vectors (n x dimension, normalised)."""

    thread: Thread
    passages: tuple[str, ...]
    vectors: Array


class ThreadStore:
    """The threads of one folder. Safe to share between threads of a process; several processes may use the file.

    Vectors of another embedder than ``embedder`` (its name and digest) are of no use: such a store is refused.
    """

    def __init__(self, folder: Path, embedder: str, dimension: int) -> None:
        self._path = folder / FILE
        self._vectors = PassageVectors(folder, dimension)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with self._connection() as connection:
                connection.executescript(_SCHEMA)
                stored = dict(connection.execute("select name, value from meta"))
                for name, value in (("format", FORMAT), ("embedder", embedder)):
                    if stored.setdefault(name, value) != value:
                        raise StoreError(f"{self._path} was made with another {name}", hint="ingest the sources anew")
                    connection.execute("insert or ignore into meta values (?, ?)", (name, value))
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"{self._path} cannot be opened ({error})") from error

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """A connection whose block is one transaction."""
        with closing(sqlite3.connect(self._path, timeout=30)) as connection:
            connection.execute("pragma journal_mode = wal")
            connection.execute("pragma synchronous = normal")
            with connection:
                yield connection

    def digests(self, source: str) -> Mapping[str, str]:
        """The digest of every thread of a source, by its key."""
        with self._connection() as connection:
            return dict(connection.execute("select key, digest from threads where source = ?", (source,)))

    def origins(self, source: str) -> Mapping[str, str]:
        """Where in its source every thread was read, by its key."""
        with self._connection() as connection:
            found = "select key, json_extract(data, '$.origin') from threads where source = ?"
            return {key: origin or "" for key, origin in connection.execute(found, (source,))}

    def checkpoint(self, source: str) -> str:
        """Where the last run of a source ended; empty if it never did, or cannot tell."""
        with self._connection() as connection:
            row = connection.execute("select value from meta where name = ?", (f"checkpoint:{source}",)).fetchone()
        return str(row[0]) if row is not None else ""

    def set_checkpoint(self, source: str, value: str) -> None:
        with self._connection() as connection:
            connection.execute("insert or replace into meta values (?, ?)", (f"checkpoint:{source}", value))

    def count(self) -> int:
        with self._connection() as connection:
            return int(connection.execute("select count(*) from threads").fetchone()[0])

    def put(self, entries: Sequence[Entry]) -> None:
        """Add threads, or replace those with the same id: all of them or, if the process is killed, none."""
        ids = [passage_id(entry.thread.id, n) for entry in entries for n in range(len(entry.passages))]
        if ids:
            self._vectors.put(ids, np.concatenate([entry.vectors for entry in entries]))
        with self._connection() as connection:
            before = _passages_of(connection, [entry.thread.id for entry in entries])
            _delete(connection, [entry.thread.id for entry in entries])
            for entry in entries:
                thread = entry.thread
                row = (thread.id, thread.source, thread.key, thread.digest, to_json(thread))
                number = connection.execute(
                    "insert into threads (id, source, key, digest, data) values (?, ?, ?, ?, ?)", row
                ).lastrowid
                for text in entry.passages:
                    words = " ".join(_words(text))
                    added = connection.execute(
                        "insert into passages (thread, terms) values (?, ?)", (number, words)
                    ).lastrowid
                    connection.execute("insert into words (rowid, terms) values (?, ?)", (added, words))
        self._vectors.remove(sorted(set(before) - set(ids)))

    def remove(self, ids: Sequence[str]) -> None:
        """Forget threads; unknown ids are ignored."""
        with self._connection() as connection:
            passages = _passages_of(connection, ids)
            _delete(connection, ids)
        self._vectors.remove(passages)

    def optimise(self) -> None:
        """Called after a bulk of writes: make searches quick again."""
        self._vectors.optimise()

    def get(self, ids: Iterable[str]) -> tuple[Thread, ...]:
        """The threads of these ids, in this order; unknown ids are left out."""
        wanted = tuple(ids)
        marks = ",".join("?" * len(wanted))
        with self._connection() as connection:
            rows = dict(connection.execute(f"select id, data from threads where id in ({marks})", wanted))
        return tuple(from_text(rows[name]) for name in wanted if name in rows)

    def all(self) -> tuple[Thread, ...]:
        """Every thread, by id."""
        with self._connection() as connection:
            return tuple(from_text(row[0]) for row in connection.execute("select data from threads order by id"))

    def by_words(self, terms: Mapping[str, float], most: int) -> tuple[tuple[str, float], ...]:
        """The ids of the threads whose best passage fits these words best, with BM25 scores, best first."""
        with self._connection() as connection:
            words = _telling(connection, [term for term in terms if not term.startswith("3:")])
            if not words:
                return ()
            query = " OR ".join(f'"{word}"' for word in words)
            rows = connection.execute(
                "select threads.id, -bm25(words) as score from words join passages on passages.number = words.rowid "
                "join threads on threads.number = passages.thread where words match ? "
                "order by score desc, threads.id limit ?",
                (query, most * 4),
            ).fetchall()
        return _best(rows, most)

    def shared_words(self, ids: Collection[str], terms: Mapping[str, float]) -> Mapping[str, float]:
        """The weighted share of these words that each of the threads has."""
        wanted = {term: weight for term, weight in terms.items() if not term.startswith("3:")}
        whole = sum(wanted.values()) or 1.0
        marks = ",".join("?" * len(ids))
        found: dict[str, set[str]] = {}
        with self._connection() as connection:
            for name, words in connection.execute(
                "select threads.id, terms from passages join threads on threads.number = passages.thread "
                f"where threads.id in ({marks})",
                tuple(ids),
            ):
                found.setdefault(name, set()).update(words.split())
        return {name: sum(wanted[term] for term in words & wanted.keys()) / whole for name, words in found.items()}

    def by_vector(self, vector: Array, most: int) -> tuple[tuple[str, float], ...]:
        """The ids of the threads with the passages nearest to a normalised vector, with cosines, best first."""
        nearest = self._vectors.search(vector.astype(np.float32), most * 4)
        found = [(passage.rpartition("#")[0], cosine) for passage, cosine in nearest]
        known = self._known({thread for thread, _ in found})
        return _best([(thread, cosine) for thread, cosine in found if thread in known], most)

    def _known(self, ids: Collection[str]) -> frozenset[str]:
        marks = ",".join("?" * len(ids))
        with self._connection() as connection:
            rows = connection.execute(f"select id from threads where id in ({marks})", tuple(ids)).fetchall()
        return frozenset(row[0] for row in rows)


def passage_id(thread_id: str, number: int) -> str:
    """The id of a passage's vector."""
    return f"{thread_id}#{number}"


def _passages_of(connection: sqlite3.Connection, ids: Sequence[str]) -> list[str]:
    """The ids of the passages of threads."""
    counted = "select count(*) from passages join threads on threads.number = passages.thread where threads.id = ?"
    counts = [(id, connection.execute(counted, (id,)).fetchone()[0]) for id in ids]
    return [passage_id(id, number) for id, count in counts for number in range(count)]


def _delete(connection: sqlite3.Connection, ids: Sequence[str]) -> None:
    for name in ids:
        found = connection.execute("select number from threads where id = ?", (name,)).fetchone()
        if found is None:
            continue
        for number, words in connection.execute(
            "select number, terms from passages where thread = ?", found
        ).fetchall():
            connection.execute("insert into words (words, rowid, terms) values ('delete', ?, ?)", (number, words))
        connection.execute("delete from passages where thread = ?", found)
        connection.execute("delete from threads where number = ?", found)


def _words(text: str) -> Iterator[str]:
    # Parts of words are for misspelt questions; a thread is full of misspelt words itself.
    return (token for token in tokens(text) if not token.startswith("3:"))


def _telling(connection: sqlite3.Connection, words: Sequence[str]) -> list[str]:
    """The rarest of the words that occur at all, as many as the query may touch postings."""
    marks = ",".join("?" * len(words))
    counts = connection.execute(f"select term, doc from vocabulary where term in ({marks})", tuple(words)).fetchall()
    chosen: list[str] = []
    touched = 0
    for word, count in sorted(counts, key=lambda row: (row[1], row[0]))[:MOST_WORDS]:
        touched += count
        if chosen and touched > MAX_POSTINGS:
            break
        chosen.append(word)
    return chosen


def _best(rows: Iterable[tuple[str, float]], most: int) -> tuple[tuple[str, float], ...]:
    """Each thread once, with its best score."""
    best: dict[str, float] = {}
    for name, score in rows:
        best.setdefault(name, float(score))
    return tuple(best.items())[:most]
