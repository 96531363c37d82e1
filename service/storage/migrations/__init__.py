"""Bring the history's database to the current schema, with alembic.

A new migration is a module in ``versions`` with the next revision; `HEAD` names the last one, so that a current
database is recognised without importing alembic (0.2 s).
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Column, MetaData, String, Table, inspect, select
from sqlalchemy.engine import Engine

HEAD = "0002"
FOLDER = Path(__file__).parent
_version = Table("alembic_version", MetaData(), Column("version_num", String(32), primary_key=True))


def migrate(engine: Engine) -> None:
    """Create or upgrade the tables. A database from before migrations counts as being at the first revision.

    Raises `SQLAlchemyError`.
    """
    tables = inspect(engine).get_table_names()
    versioned = _version.name in tables
    if versioned:
        with engine.connect() as connection:
            if connection.execute(select(_version)).scalars().all() == [HEAD]:
                return
    from alembic import command
    from alembic.config import Config

    config = Config()
    # The option is a format string of configparser, in which a percent sign must be doubled.
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        if "turns" in tables and not versioned:
            command.stamp(config, "0001")
        command.upgrade(config, "head")
