"""All rows of the history as lines of JSON, which SQLite and PostgreSQL read alike."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from typing import Any, TypeAlias

from sqlalchemy import Column, DateTime, LargeBinary, MetaData, Table, func, insert, select
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from trainmedic.kb.errors import StoreError
from trainmedic.service.storage.database import make_schema, reading, writing
from trainmedic.service.storage.migrations import VERSION_TABLE, migrate, require_known, revision_of
from trainmedic.service.storage.silence import patience

TRANSIENT = frozenset({VERSION_TABLE, "rate_counters", "sessions"})
"""Tables that are not part of a backup."""
BATCH = 100
"""Rows in memory at once: each may hold megabytes."""
Lines: TypeAlias = Iterable[bytes]


@contextmanager
def snapshot(engine: Engine) -> Iterator[tuple[str | None, Mapping[str, Iterator[str]]]]:
    """The revision and the rows of every table at one moment, whatever is written meanwhile.

    The revision is None if the database has no tables. Raises `StoreError`.
    """
    try:
        with patience(), engine.connect() as connection:
            if connection.dialect.name == "sqlite":
                connection.exec_driver_sql("BEGIN")
            else:
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            revision = revision_of(connection)
            tables = _tables(connection) if revision is not None else ()
            yield revision, {table.name: _lines(connection, table) for table in tables}
    except SQLAlchemyError as error:
        raise StoreError("the history cannot be read", hint=type(error).__name__) from error


def load(engine: Engine, revision: str, tables: Mapping[str, Callable[[], Lines]]) -> Mapping[str, int]:
    """Fill an empty database; the number of rows by table. ``revision`` is that of the lines.

    Raises `StoreError` if the database holds rows, or if the lines are damaged or of a newer release; then no row is
    written.
    """
    try:
        require_known(revision)
        make_schema(engine)
        require_empty(engine)
        clear(engine)
        migrate(engine, revision)
        with engine.begin() as connection:
            by_name = {table.name: table for table in _tables(connection)}
            if unknown := set(tables) - set(by_name):
                raise StoreError(f"the backup holds an unknown table {min(unknown)}")
            # In the order of the schema: rows that others refer to come first.
            counts = {
                name: _insert(connection, table, tables[name]()) for name, table in by_name.items() if name in tables
            }
        migrate(engine)
        return counts
    except (SQLAlchemyError, ValueError, OverflowError) as error:  # a text or a number that the database cannot store
        raise StoreError("the history cannot be written", hint=type(error).__name__) from error


def _tables(connection: Connection) -> tuple[Table, ...]:
    metadata = MetaData()
    metadata.reflect(connection)
    return tuple(table for table in metadata.sorted_tables if table.name not in TRANSIENT)


def require_empty(engine: Engine) -> None:
    """Raise `StoreError` if a table holds a row."""
    with reading(engine) as connection:
        for table in _tables(connection):
            if connection.execute(select(table).limit(1)).first() is not None:
                raise StoreError(
                    f"the history holds {table.name} already", hint="restore into an empty database and data folder"
                )


def clear(engine: Engine) -> None:
    """Remove all tables with their rows."""
    with writing(engine) as connection:
        metadata = MetaData()
        metadata.reflect(connection)
        metadata.drop_all(connection)


def _lines(connection: Connection, table: Table) -> Iterator[str]:
    query = select(table).order_by(*table.primary_key.columns)
    for row in connection.execution_options(yield_per=BATCH).execute(query).mappings():
        yield json.dumps({name: _plain(value) for name, value in row.items()}, ensure_ascii=False)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        # SQLite stores no zone; all times are UTC.
        return (value if value.tzinfo is not None else value.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _insert(connection: Connection, table: Table, lines: Lines) -> int:
    count = 0
    rows = (_row(table, number, line) for number, line in enumerate(lines, 1))
    while batch := list(islice(rows, BATCH)):
        connection.execute(insert(table), batch)
        count += len(batch)
    (key, *others) = table.primary_key.columns
    if connection.dialect.name == "postgresql" and not others and key.type.python_type is int:
        # Rows with an id of their own do not advance the sequence that the next one is taken from.
        sequence = func.pg_get_serial_sequence(table.name, key.name)
        connection.execute(select(func.setval(sequence, func.coalesce(func.max(key), 1), func.max(key).is_not(None))))
    return count


def _row(table: Table, number: int, line: bytes) -> dict[str, Any]:
    place = f"line {number} of the backup's table {table.name}"
    try:
        row = json.loads(line)
        if not isinstance(row, dict):
            raise StoreError(f"{place} is not an object")
        if unknown := sorted(row.keys() - table.columns.keys()):
            raise StoreError(f"{place} has an unknown column {unknown[0]}")
        return {name: _value(table.columns[name], value) for name, value in row.items()}
    except (ValueError, TypeError, RecursionError) as error:
        raise StoreError(f"{place} is damaged", hint=type(error).__name__) from error


def _value(column: Column[Any], value: Any) -> Any:
    """Raises `ValueError` or `TypeError` if the column does not have such values."""
    if value is None:
        return None
    if isinstance(column.type, DateTime):
        return datetime.fromisoformat(value)
    if isinstance(column.type, LargeBinary):
        return base64.b64decode(value, validate=True)
    if not isinstance(value, column.type.python_type):
        raise TypeError(f"{column.name} is a {type(value).__name__}")
    return value
