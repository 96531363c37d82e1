"""Counters of requests in the service's database, for several processes without another storage."""

from __future__ import annotations

import time

from limits.storage import Storage
from sqlalchemy import Column, Float, Integer, String, Table, case, delete, insert, select, update
from sqlalchemy.engine import Engine
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from trainmedic.service.storage.database import METADATA

MAX_KEY = 255
_counters = Table(
    "rate_counters",
    METADATA,
    Column("key", String(MAX_KEY), primary_key=True),
    Column("hits", Integer, nullable=False),
    Column("expires_at", Float, nullable=False, index=True),
)


class DatabaseCounters(Storage):
    """A storage of the package limits. Times are seconds since the epoch."""

    STORAGE_SCHEME = None

    def __init__(self, engine: Engine) -> None:
        super().__init__(wrap_exceptions=True)
        self._engine = engine

    @property
    def base_exceptions(self) -> type[Exception]:
        return SQLAlchemyError

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Add to a counter, which begins again when it has expired; returns its value."""
        try:
            return self._added(key, expiry, amount)
        except IntegrityError:  # another process made the counter meanwhile
            return self._added(key, expiry, amount)

    def _added(self, key: str, expiry: int, amount: int) -> int:
        key, now = key[:MAX_KEY], time.time()
        over = _counters.c.expires_at <= now
        changed = {
            "hits": case((over, amount), else_=_counters.c.hits + amount),
            "expires_at": case((over, now + expiry), else_=_counters.c.expires_at),
        }
        with self._engine.begin() as connection:
            if not connection.execute(update(_counters).where(_counters.c.key == key).values(changed)).rowcount:
                connection.execute(delete(_counters).where(over))
                connection.execute(insert(_counters), {"key": key, "hits": amount, "expires_at": now + expiry})
            return int(connection.execute(select(_counters.c.hits).where(_counters.c.key == key)).scalar_one())

    def get(self, key: str) -> int:
        valid = (_counters.c.key == key[:MAX_KEY]) & (_counters.c.expires_at > time.time())
        with self._engine.connect() as connection:
            return int(connection.execute(select(_counters.c.hits).where(valid)).scalar() or 0)

    def get_expiry(self, key: str) -> float:
        """When the counter begins again; the present if there is none."""
        with self._engine.connect() as connection:
            until = select(_counters.c.expires_at).where(_counters.c.key == key[:MAX_KEY])
            return float(connection.execute(until).scalar() or time.time())

    def check(self) -> bool:
        with self._engine.connect() as connection:
            return connection.execute(select(1)).scalar() == 1

    def reset(self) -> int:
        with self._engine.begin() as connection:
            return connection.execute(delete(_counters)).rowcount

    def clear(self, key: str) -> None:
        with self._engine.begin() as connection:
            connection.execute(delete(_counters).where(_counters.c.key == key[:MAX_KEY]))
