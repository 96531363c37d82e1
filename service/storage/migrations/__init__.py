"""Bring the history's database to the current schema, with alembic.

A new migration is a module in ``versions`` with the next revision; `HEAD` names the last one, so that a current
database is recognised without importing alembic (0.2 s).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Column, MetaData, String, Table, func, inspect, select
from sqlalchemy.engine import Connection, Engine

from trainmedic.kb.errors import StoreError

if TYPE_CHECKING:
    from alembic.config import Config

HEAD = "0001"
FOLDER = Path(__file__).parent
LOCK = 0x747261696E6D6564
"""Of PostgreSQL's advisory locks, the one that a migration holds."""
VERSION_TABLE = "alembic_version"
_version = Table(VERSION_TABLE, MetaData(), Column("version_num", String(32), primary_key=True))


def migrate(engine: Engine) -> None:
    """Create or upgrade the tables. Of several processes that start at once, one migrates and the others wait.

    Raises `SQLAlchemyError`, and `StoreError` if the database is of a newer release.
    """
    with engine.connect() as connection:
        if revision_of(connection) == HEAD:
            return
    from alembic import command
    from alembic.script import ScriptDirectory

    config = _config()
    with engine.begin() as connection:
        _lock(connection)
        config.attributes["connection"] = connection
        revision = revision_of(connection)
        known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
        if revision is not None and revision not in known:
            hint = "install that release, or restore a backup"
            raise StoreError(f"the history is of a newer release (revision {revision})", hint=hint)
        command.upgrade(config, HEAD)


def _config() -> Config:
    from alembic.config import Config

    config = Config()
    # The option is a format string of configparser, in which a percent sign must be doubled.
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    return config


def revision_of(connection: Connection) -> str | None:
    """The revision of the schema; None if there is none yet."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.execute(select(_version.c.version_num)).scalar()


def _lock(connection: Connection) -> None:
    """Wait until no other process migrates. The lock ends with the transaction."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(LOCK)))
    elif connection.dialect.name == "sqlite":
        # Also makes the whole migration one transaction: the driver begins none before it creates a table.
        connection.exec_driver_sql("BEGIN IMMEDIATE")
