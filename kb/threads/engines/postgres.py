"""Vectors in PostgreSQL with pgvector. ``postgres:`` is followed by the URL, as ``postgres:postgresql://host/db``.

Up to some ten thousand vectors pgvector compares every one; ``optimise`` makes an HNSW index beyond.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pgvector.sqlalchemy import HALFVEC
from sqlalchemy import Column, MetaData, String, Table, create_engine, delete, func, insert, select, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from trainmedic.kb.errors import StoreError
from trainmedic.kb.threads.engines import Array, ranked

TABLE = "trainmedic_passages"
INDEX = f"{TABLE}_hnsw"
EXACT = 50_000
"""Vectors up to which every one is compared."""
EXPLORED = 200
"""Candidates that a search of the index looks at."""
DRIVER = "postgresql+psycopg"


def open_engine(location: str, folder: Path, dimension: int) -> PostgresEngine:
    return PostgresEngine(location, dimension)


class PostgresEngine:
    """One table, made with its extension if it is not there."""

    def __init__(self, url: str, dimension: int, exact: int = EXACT) -> None:
        self._exact = exact
        self._table = Table(
            TABLE, MetaData(), Column("id", String, primary_key=True), Column("vector", HALFVEC(dimension))
        )
        try:
            self._engine = create_engine(make_url(url).set(drivername=DRIVER), pool_pre_ping=True)
            with self._engine.begin() as connection:
                connection.execute(text("create extension if not exists vector"))
            self._table.metadata.create_all(self._engine)
        except SQLAlchemyError as error:
            raise StoreError("the PostgreSQL of vector_store cannot be opened", hint=type(error).__name__) from error

    def put(self, ids: Sequence[str], vectors: Array) -> None:
        self._replace(ids, [{"id": id, "vector": vector} for id, vector in zip(ids, vectors, strict=True)])

    def remove(self, ids: Sequence[str]) -> None:
        self._replace(ids, [])

    def _replace(self, ids: Sequence[str], rows: Sequence[Mapping[str, object]]) -> None:
        try:
            with self._engine.begin() as connection:
                connection.execute(delete(self._table).where(self._table.c.id.in_(list(ids))))
                if rows:
                    connection.execute(insert(self._table), list(rows))
        except SQLAlchemyError as error:
            raise StoreError("PostgreSQL does not take the change", hint=type(error).__name__) from error

    def search(self, vector: Array, most: int) -> tuple[tuple[str, float], ...]:
        distance = self._table.c.vector.max_inner_product(vector)
        query = select(self._table.c.id, distance.label("distance")).order_by(distance).limit(most)
        try:
            with self._engine.begin() as connection:
                connection.execute(text(f"set local hnsw.ef_search = {max(EXPLORED, min(most, 1000))}"))
                rows = connection.execute(query).all()
        except SQLAlchemyError as error:
            raise StoreError("PostgreSQL does not answer", hint=type(error).__name__) from error
        return ranked([(row.id, -float(row.distance)) for row in rows], most)

    def count(self) -> int:
        with self._engine.connect() as connection:
            return int(connection.execute(select(func.count()).select_from(self._table)).scalar_one())

    def close(self) -> None:
        self._engine.dispose()

    def optimise(self) -> None:
        if self.count() <= self._exact:
            return
        with self._engine.begin() as connection:
            connection.execute(
                text(f"create index if not exists {INDEX} on {TABLE} using hnsw (vector halfvec_ip_ops)")
            )
