"""The database of the service, SQLite or PostgreSQL: conversations, keys, sessions and the journal share it.

Several processes may use one at once.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import MetaData, create_engine, event
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import QueuePool

from trainmedic.kb.errors import InvalidSettings, StoreError
from trainmedic.service.storage.migrations import migrate
from trainmedic.service.storage.silence import bound_silence, patience

METADATA = MetaData()
"""All tables. Their definitions are in the modules that use them."""
CONNECT_TIMEOUT_S = 5
DRIVER = "postgresql+psycopg"
LIVENESS = {
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""Parameters of libpq by which a connection ends whose packets are lost: seconds, and of the last one milliseconds."""
SWITCH_ATTEMPTS, SWITCH_PAUSE_S = 100, 0.05
_UNREACHABLE = (OperationalError, InterfaceError, PoolTimeout)
"""The database is gone, locked, full or overloaded: nothing that the caller did."""


def open_database(url: str) -> Engine:
    """The database at ``url`` with the current tables. Raises `StoreError` if it cannot be reached."""
    engine = engine_of(url)
    try:
        with patience():  # another process may migrate for minutes
            migrate(engine)
    except StoreError:
        engine.dispose()
        raise
    except SQLAlchemyError as error:
        engine.dispose()
        name = make_url(url).render_as_string(hide_password=True)
        raise StoreError(f"the database at {name} cannot be opened", hint=type(error).__name__) from error
    return engine


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A connection. Raises `StoreError` if the database cannot be reached."""
    with _reachable(), engine.connect() as connection:
        yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A connection whose block is one transaction. Raises `StoreError` if the database cannot be reached."""
    with _reachable(), engine.begin() as connection:
        yield connection


def scrub(engine: Engine) -> None:
    """Take deleted rows out of SQLite's write-ahead log too; what a reader still needs waits for the next time.

    PostgreSQL frees the space of deleted rows by itself, and overwrites it when it is used again.
    """
    if engine.dialect.name == "sqlite":
        with _reachable(), engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")


@contextmanager
def _reachable() -> Iterator[None]:
    try:
        yield
    except _UNREACHABLE as error:
        # Not the driver's message: it may name the host, the user and the statement.
        raise StoreError("the database cannot be reached", hint=type(error).__name__) from error


def aware(time: datetime | str) -> datetime:
    """A stored time; SQLite stores it without its zone, and aggregates give text."""
    parsed = datetime.fromisoformat(time) if isinstance(time, str) else time
    return parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)


def engine_of(url: str) -> Engine:
    """Connections to the database at ``url``; none is made yet. Raises `InvalidSettings` for what is not a URL."""
    parsed = parsed_url(url)
    if parsed.get_backend_name() != "sqlite":
        psycopg = parsed.drivername == DRIVER
        options = {"connect_timeout": CONNECT_TIMEOUT_S, **(LIVENESS if psycopg else {})}
        engine = create_engine(
            parsed,
            # A database server closes idle connections, and may be restarted: the ping replaces them before a query.
            pool_pre_ping=True,
            connect_args={name: value for name, value in options.items() if name not in parsed.query},
        )
        if psycopg:
            bound_silence(engine)
        return engine
    if not parsed.database or parsed.database == ":memory:":
        # One connection is the whole database; threads take turns with it, as their transactions must not mix.
        return create_engine(
            parsed, poolclass=QueuePool, pool_size=1, max_overflow=0, connect_args={"check_same_thread": False}
        )
    with suppress(OSError):  # connecting reports what is wrong with the path
        # Private on a shared machine; SQLite gives its journal files the same mode.
        os.close(os.open(parsed.database, os.O_CREAT | os.O_RDWR, 0o600))
    engine = create_engine(parsed, connect_args={"check_same_thread": False, "timeout": 10})

    @event.listens_for(engine, "connect")
    def _write_ahead(connection: object, _record: object) -> None:
        # Readers must not wait for the writer: answers are stored while others are asked.
        cursor = connection.cursor()  # type: ignore[attr-defined]
        _switch_to_write_ahead(cursor)
        # Safe with a write-ahead log; a power failure may lose the last turns, never corrupt the file.
        cursor.execute("PRAGMA synchronous=NORMAL")
        # What a user deletes is overwritten, not only unlinked; the default differs between builds of SQLite.
        cursor.execute("PRAGMA secure_delete=ON")
        cursor.close()

    return engine


def parsed_url(url: str) -> URL:
    """The URL with its driver: ``postgres://`` and ``postgresql://`` mean that of the extra ``postgres``.

    Raises `InvalidSettings`, whose message does not show the URL: it may hold a password.
    """
    try:
        parsed = make_url(url)
        if parsed.drivername in ("postgres", "postgresql"):
            parsed = parsed.set(drivername=DRIVER)
        parsed.get_dialect()
    except (ArgumentError, ValueError):
        raise InvalidSettings(
            "database_url is not a database URL",
            hint="such as postgresql://user:password@host/name, with an @ of the password as %40",
        ) from None
    return parsed


def _switch_to_write_ahead(cursor: Any) -> None:
    """The switch needs the file alone, and SQLite refuses it at once where processes that start together deadlock."""
    for _ in range(SWITCH_ATTEMPTS):
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError:
            time.sleep(SWITCH_PAUSE_S)
    cursor.execute("PRAGMA journal_mode=WAL")
