"""Connections to PostgreSQL that end when the server says nothing for a while.

A server that is stopped, or a proxy in front of it, keeps its connections and acknowledges every packet: neither TCP
nor the server's own limit for statements would end the wait.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Engine

SILENCE_S = 10.0
"""Longest that a statement of a request may take to its first row. The longest usual one takes milliseconds."""
_limit: ContextVar[float] = ContextVar("silence", default=SILENCE_S)


@contextmanager
def patience(seconds: float = float("inf")) -> Iterator[None]:
    """Another limit within the block, for what may take long: migrations, backups, the deletion of old records."""
    token = _limit.set(seconds)
    try:
        yield
    finally:
        _limit.reset(token)


def bound_silence(engine: Engine) -> None:
    """Make all further connections of ``engine``, whose driver is psycopg, such that end."""
    driver: Any = engine.dialect.loaded_dbapi

    class BoundedConnection(driver.Connection):  # type: ignore[misc]
        def wait(self, gen: Generator[int, int, Any], *arguments: Any, **options: Any) -> Any:
            """Run the driver's generator, which yields what to wait for and is told of it, or of nothing by 0."""
            try:
                return super().wait(_bounded(gen, _limit.get()), *arguments, **options)
            except TimeoutError:
                self.close()
                raise driver.OperationalError("the server does not answer") from None

    @event.listens_for(engine, "do_connect")
    def _connect(dialect: Any, record: Any, arguments: Any, options: Any) -> Any:
        return BoundedConnection.connect(*arguments, **options)


def _bounded(steps: Generator[int, int, Any], limit_s: float) -> Generator[int, int, Any]:
    """The same steps. Raises `TimeoutError` if nothing happens for ``limit_s``."""
    since = time.monotonic()
    try:
        wanted = next(steps)
        while True:
            ready = yield wanted
            if ready:
                since = time.monotonic()
            elif time.monotonic() - since > limit_s:
                raise TimeoutError
            wanted = steps.send(ready)
    except StopIteration as end:
        return end.value
