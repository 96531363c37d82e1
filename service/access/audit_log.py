"""The audit log: who did what, when, and with which result. Entries hold ids and routes, never what anyone wrote."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Column, DateTime, Integer, String, Table, delete, insert, select
from sqlalchemy.engine import Engine

from trainmedic.service.storage.database import METADATA, aware

LENGTHS = {"who": 64, "name": 100, "action": 100, "target": 64, "result": 32, "address": 90, "trace_id": 32}
"""Characters of each text; the rest is cut."""
_log = Table(
    "access_log",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("at", DateTime(timezone=True), nullable=False, index=True),
    *(Column(name, String(length), nullable=False, index=name == "who") for name, length in LENGTHS.items()),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """``who`` is the id of a key or user, empty for anyone; ``result`` an HTTP status or a word."""

    who: str
    action: str
    result: str
    name: str = ""
    target: str = ""
    address: str = ""
    trace_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedEntry:
    """An entry with its time."""

    at: datetime
    entry: AuditEntry


class AuditLog:
    """The entries in the database. They are added and, when they are old, deleted; nothing changes one."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(self, entry: AuditEntry, now: datetime | None = None) -> None:
        values: dict[str, Any] = {name: str(value)[: LENGTHS[name]] for name, value in asdict(entry).items()}
        values["at"] = now or datetime.now(UTC)
        with self._engine.begin() as connection:
            connection.execute(insert(_log), values)

    def entries(self, who: str = "", since: datetime | None = None, limit: int = 100) -> tuple[DatedEntry, ...]:
        """The latest entries, oldest first."""
        query = select(_log).order_by(_log.c.id.desc()).limit(limit)
        if who:
            query = query.where(_log.c.who == who)
        if since is not None:
            query = query.where(_log.c.at >= since)
        names = AuditEntry.__dataclass_fields__
        with self._engine.connect() as connection:
            rows = connection.execute(query).all()
        return tuple(
            DatedEntry(at=aware(row.at), entry=AuditEntry(**{name: getattr(row, name) for name in names}))
            for row in reversed(rows)
        )

    def forget(self, older_than: timedelta, now: datetime | None = None) -> int:
        """Delete entries from before; returns how many."""
        with self._engine.begin() as connection:
            return connection.execute(delete(_log).where(_log.c.at < (now or datetime.now(UTC)) - older_than)).rowcount
