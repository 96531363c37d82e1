"""How many requests a client may send: counted by key or by address."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, ip_address, ip_network
from math import ceil
from typing import TypeAlias, TypeVar

from limits import RateLimitItem, parse
from limits.errors import StorageError
from limits.storage import MemoryStorage, Storage, storage_from_string
from limits.strategies import FixedWindowRateLimiter
from sqlalchemy import Column, Float, Integer, String, Table, case, delete, insert, select, update
from sqlalchemy.engine import Engine
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from starlette.concurrency import run_in_threadpool

from trainmedic.kb.errors import InvalidSettings
from trainmedic.service.access.deadline import within
from trainmedic.service.access.principals import Principal
from trainmedic.service.settings import Settings
from trainmedic.service.storage.database import METADATA

MOST_CLIENTS = 100_000
"""Counters in memory; beyond, new clients share one."""
IPV6_CLIENT = 64
"""Bits of an IPv6 address that stand for one client: providers give whole networks of this size."""
ATTEMPTS = "20/minute"
"""The most failed attempts to sign in, and wrong keys, of one address."""
COUNT_S, ALONE_S = 1.5, 5.0
"""Longest that a request waits for the shared counters, and how long they are left alone when they fail."""
PEER_FACTOR = 10
"""As many times the attempts of one address may come through one proxy."""
MAX_KEY = 255
_counters = Table(
    "rate_counters",
    METADATA,
    Column("key", String(MAX_KEY), primary_key=True),
    Column("hits", Integer, nullable=False),
    Column("expires_at", Float, nullable=False, index=True),
)
T = TypeVar("T")
Counted: TypeAlias = tuple[RateLimitItem, str, str]
"""A limit, its name, and who is counted."""
log = logging.getLogger("trainmedic.limits")


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The rest of the tightest limit; ``reset_s`` is when it is whole again."""

    limit: int
    remaining: int
    reset_s: int
    spent: bool
    """Whether the request exceeds the limit."""

    @property
    def headers(self) -> dict[str, str]:
        fields = {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(self.reset_s),
        }
        return fields | {"Retry-After": str(max(1, self.reset_s))} if self.spent else fields


class RateLimits:
    """The limits of the settings and of the keys. Raises `InvalidSettings` for a storage or limit it cannot read."""

    def __init__(self, settings: Settings, storage: Storage | None = None, *, attempts: str = ATTEMPTS) -> None:
        self._all = item_of("rate_limit", settings.rate.limit)
        self._ask = item_of("rate_limit_ask", settings.rate.limit_ask)
        self._login = item_of("attempts", attempts)
        self._login_peer = type(self._login)(self._login.amount * PEER_FACTOR, self._login.multiples)
        place = settings.rate.limit_storage.get_secret_value()
        self._memory = FixedWindowRateLimiter(MemoryStorage())
        self._shared = FixedWindowRateLimiter(storage or storage_of(place)) if place != "memory" else None
        self._complained = self._alone_until = float("-inf")

    async def spend(self, principal: Principal, address: str, *, asks: bool) -> Budget:
        """Count one request; ``asks``: one that costs as much as a question."""
        who = client_of(principal, address)
        if principal.rate_limit:
            return await self._spend([(item_of("limit of the key", principal.rate_limit), "key", who)])
        return await self._spend([(self._all, "all", who), *([(self._ask, "ask", who)] if asks else [])])

    async def spend_login(self, address: str, peer: str = "") -> Budget:
        """Count one attempt to sign in, or one request with a wrong key.

        It counts against the proxy ``peer`` too: what a proxy says of the address may be what the client told it.
        """
        return await self._spend(self._attempts(address, peer))

    async def login_spent(self, address: str, peer: str = "") -> bool:
        """Whether this address, or the proxy before it, has used up its attempts."""

        def spent(strategy: FixedWindowRateLimiter) -> bool:
            return not all(strategy.test(*item) for item in self._attempts(address, peer))

        return await self._run(spent)

    def _attempts(self, address: str, peer: str) -> list[Counted]:
        through = [(self._login_peer, "login through", network_of(peer))] if peer else []
        return [(self._login, "login", network_of(address)), *through]

    async def _spend(self, items: list[Counted]) -> Budget:
        def spend(strategy: FixedWindowRateLimiter) -> Budget:
            return min(budgets(strategy, items), key=lambda budget: (not budget.spent, budget.remaining))

        return await self._run(spend)

    async def _run(self, call: Callable[[FixedWindowRateLimiter], T]) -> T:
        """The result over the shared storage; over this process's memory while that cannot be reached."""
        if self._shared is None or time.monotonic() < self._alone_until:
            return call(self._memory)
        try:
            return await within(COUNT_S, run_in_threadpool(call, self._shared))
        except (StorageError, TimeoutError) as error:
            self._alone_until = time.monotonic() + ALONE_S
            if time.monotonic() - self._complained > 60:
                self._complained = time.monotonic()
                reason = error.storage_error if isinstance(error, StorageError) else error
                log.warning("limits are counted by this process alone: %s", type(reason).__name__)
            return call(self._memory)


def budgets(strategy: FixedWindowRateLimiter, items: list[Counted]) -> Iterator[Budget]:
    storage = strategy.storage
    for item, name, who in items:
        full = isinstance(storage, MemoryStorage) and len(storage.storage) >= MOST_CLIENTS
        client = "others" if full and not storage.get(item.key_for(name, who)) else who
        allowed = strategy.hit(item, name, client)
        stats = strategy.get_window_stats(item, name, client)
        yield Budget(
            limit=item.amount,
            remaining=max(0, stats.remaining),
            reset_s=max(0, ceil(stats.reset_time - time.time())),
            spent=not allowed,
        )


def item_of(name: str, text: str) -> RateLimitItem:
    """A limit such as ``100/minute``. Raises `InvalidSettings`."""
    try:
        return parse(text)
    except ValueError as error:
        raise InvalidSettings(
            f"{name}: {text!r} is not a rate limit", hint="write it like 100/minute or 2000 per hour"
        ) from error


def storage_of(place: str) -> Storage:
    """Where the counters are. Raises `InvalidSettings`."""
    try:
        storage = storage_from_string(place, wrap_exceptions=True)
        if isinstance(storage, Storage):
            return storage
        raise InvalidSettings("rate_limit_storage: not an asynchronous storage; use an async+… URL")
    except InvalidSettings:
        raise
    except Exception as error:  # the libraries of the storages raise what they like
        raise InvalidSettings(f"rate_limit_storage cannot be used ({type(error).__name__})") from error


def client_of(principal: Principal, address: str) -> str:
    """Who requests are counted for: a key, else an address."""
    return f"{principal.id}@{network_of(address)}" if principal.shared else principal.id


def network_of(address: str) -> str:
    """The client behind an address."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(parsed, IPv4Address):
        return address
    # All IPv4 addresses written as IPv6 ones are in the same /64.
    mapped = parsed.ipv4_mapped
    return str(mapped) if mapped is not None else str(ip_network((parsed, IPV6_CLIENT), strict=False))


class DatabaseCounters(Storage):
    """Counters in the service's database, for several processes. Times are seconds since the epoch."""

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
