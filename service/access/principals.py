"""Who a request comes from: a key of the settings, a stored key, or anyone."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic
from typing import TypeVar

from cachetools import TTLCache
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.exc import TimeoutError as DatabaseTimeout
from starlette.concurrency import run_in_threadpool

from trainmedic.service.access.deadline import SingleFlight
from trainmedic.service.access.keys import (
    PREFIX,
    SCOPES,
    SESSION_SECRET,
    ApiKey,
    KeyStore,
    Scope,
    Session,
    SessionStore,
    key_digest,
    principal_id,
)
from trainmedic.service.settings import Settings

T = TypeVar("T")
CACHED_S = 5.0
"""Seconds until a revoked key or a closed session is noticed by all replicas."""
OUTAGE_S = 900.0
"""Seconds for which those who were let in go on to be, while the database cannot be reached."""
LOOKUP_S = 1.5
"""Longest that a request waits for the database to know a key; after that there is an outage."""
MOST_CACHED = 4_096
SHARED = "shared:"
"""Begins the id of a key of the settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who a request comes from. ``id`` owns conversations; it is empty if no one has to say who they are."""

    id: str
    name: str
    scope: Scope
    rate_limit: str = ""
    """Of a stored key; replaces the limits of the settings."""

    def may(self, scope: Scope) -> bool:
        return SCOPES.index(self.scope) >= SCOPES.index(scope)

    @property
    def shared(self) -> bool:
        """Whether several people may use these credentials."""
        return not self.id.startswith("key:")


ANYBODY = Principal(id="", name="", scope="ask")


class Access:
    """Finds out who a request comes from. Without keys in the settings or the database, everyone may ask."""

    def __init__(
        self,
        settings: Settings,
        keys: KeyStore | None = None,
        sessions: SessionStore | None = None,
        *,
        cached_s: float = CACHED_S,
    ) -> None:
        self._guarded = settings.guarded
        self._keys = keys
        self._sessions = sessions
        listed: tuple[tuple[frozenset[str], Scope], ...] = ((settings.administrators, "admin"), (settings.keys, "ask"))
        self._shared = tuple(
            (key.encode(), Principal(id=shared_id(key), name=f"{scope} key of the settings", scope=scope))
            for keys_of_scope, scope in listed
            for key in sorted(keys_of_scope)
        )
        self._admin_keys = bool(settings.administrators)
        self._known: TTLCache[str, Principal | None] = TTLCache(MOST_CACHED, cached_s)
        self._stored: TTLCache[str, bool] = TTLCache(2, cached_s, timer=monotonic)
        self._lately: TTLCache[str, Principal | None] = TTLCache(MOST_CACHED, OUTAGE_S)
        self._lately_stored: TTLCache[str, bool] = TTLCache(2, OUTAGE_S)
        self._lookups, self._stored_lookups = SingleFlight[Principal | None](LOOKUP_S), SingleFlight[bool](LOOKUP_S)

    async def required(self) -> bool:
        """Whether callers must say who they are."""
        return self._guarded or await self._any("keys", lambda keys: keys.any())

    async def administrators(self) -> bool:
        """Whether there can be an administrator."""
        return self._admin_keys or await self._any("administrators", lambda keys: keys.any_administrator())

    async def bearer(self, authorization: bytes) -> Principal | None:
        """Who an ``Authorization`` header stands for; None if its key is wrong."""
        scheme, _, key = authorization.partition(b" ")
        return await self.key(key.strip()) if scheme.lower() == b"bearer" else None

    async def key(self, key: bytes) -> Principal | None:
        # Every key is compared, so that the time taken does not depend on which one is close.
        matches = [principal for known, principal in self._shared if hmac.compare_digest(key, known)]
        if matches:
            return matches[0]
        keys = self._keys
        if keys is None or not key.startswith(PREFIX.encode()):
            return None
        token = key.decode("latin-1")
        return await self._cached(f"key {token}", lambda: of_key(keys.authenticate(token)))

    async def session(self, secret: str) -> Principal | None:
        """Who has signed in with this secret; None if the session is over."""
        sessions = self._sessions
        if sessions is None or len(secret) != SESSION_SECRET:
            return None
        return await self._cached(f"session {secret}", lambda: self._signed_in(sessions.find(secret)))

    async def sign_in(self, principal: Principal, lasts_s: float, key: str = "") -> str | None:
        """The secret of a new session, which ends with the ``key`` that opened it; None if none can be stored."""
        sessions = self._sessions
        if sessions is None:
            return None
        session = Session(
            principal=principal.id,
            name=principal.name,
            scope=principal.scope,
            # A key of the settings may be a word that people made up: not even its digest is stored.
            key_digest=key_digest(key) if key.startswith(PREFIX) and not principal.shared else "",
        )
        return await run_in_threadpool(sessions.open, session, timedelta(seconds=lasts_s))

    async def sign_out(self, secret: str) -> None:
        if self._sessions is not None:
            await run_in_threadpool(self._sessions.close, secret)
            self._known.pop(hashed(f"session {secret}"), None)

    def _signed_in(self, session: Session | None) -> Principal | None:
        if session is None:
            return None
        if session.principal.startswith(SHARED):
            return next((known for _, known in self._shared if known.id == session.principal), None)
        # A session lives no longer than the secret that opened it.
        return of_key(self._keys.of_session(session) if self._keys is not None else None)

    async def _any(self, name: str, ask: Callable[[KeyStore], bool]) -> bool:
        keys = self._keys
        if keys is None:
            return False
        return await _found(name, lambda: ask(keys), self._stored_lookups, self._stored, self._lately_stored)

    async def _cached(self, name: str, find: Callable[[], Principal | None]) -> Principal | None:
        # Hashed, so that no secret stays in memory.
        return await _found(hashed(name), find, self._lookups, self._known, self._lately)


async def _found(
    name: str,
    find: Callable[[], T],
    lookups: SingleFlight[T],
    known: MutableMapping[str, T],
    lately: MutableMapping[str, T],
) -> T:
    """What is known of a name, else what ``find`` finds, else in an outage of the database what it found lately.

    Raises `SQLAlchemyError`.
    """
    value = known.get(name, _MISSING)
    if not isinstance(value, _Missing):
        return value

    async def look() -> T:
        found = await run_in_threadpool(find)
        known[name] = lately[name] = found  # also if it comes too late for this request
        return found

    try:
        return await lookups(look, name)
    except (SQLAlchemyError, TimeoutError) as error:
        value = lately.get(name, _MISSING)
        if not isinstance(value, _Missing):
            known[name] = value
            return value
        if isinstance(error, TimeoutError):
            raise DatabaseTimeout("the database does not answer") from error
        raise


class _Missing:
    """No value; None is one."""


_MISSING = _Missing()


def of_key(key: ApiKey | None) -> Principal | None:
    if key is None:
        return None
    return Principal(id=principal_id(key.id), name=key.name, scope=key.scope, rate_limit=key.rate_limit)


def shared_id(key: str) -> str:
    """The id of a key of the settings, from which the key cannot be found out by trying words."""
    return SHARED + hashlib.scrypt(key.encode(), salt=b"trainmedic principal", n=2**12, r=8, p=1, dklen=12).hex()


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
