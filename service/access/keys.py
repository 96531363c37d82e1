"""API keys and sign-in sessions. Secrets are random and long, so a plain digest of them is all that is stored."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeAlias, cast

from sqlalchemy import Column, DateTime, String, Table, delete, insert, select, update
from sqlalchemy.engine import Engine, Row

from trainmedic.kb.errors import InvalidRequest, NotFound
from trainmedic.service.storage.database import METADATA, aware

Scope: TypeAlias = Literal["read", "ask", "admin"]
SCOPES: tuple[Scope, ...] = ("read", "ask", "admin")
"""Each includes those before it."""
PREFIX = "tm_"
SECRET_BYTES = 32
SESSION_SECRET = 43
"""Characters of a session's secret."""
MAX_NAME = 100
_keys = Table(
    "api_keys",
    METADATA,
    Column("id", String(16), primary_key=True),
    Column("name", String(MAX_NAME), nullable=False),
    Column("scope", String(8), nullable=False),
    Column("rate_limit", String(64), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("previous_digest", String(64), nullable=False),
    Column("previous_until", DateTime(timezone=True), nullable=True),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("expires_at", DateTime(timezone=True), nullable=True),
    Column("revoked_at", DateTime(timezone=True), nullable=True),
)
_sessions = Table(
    "sessions",
    METADATA,
    Column("digest", String(64), primary_key=True),
    Column("principal", String(64), nullable=False),
    Column("name", String(MAX_NAME), nullable=False),
    Column("scope", String(8), nullable=False),
    Column("expires_at", DateTime(timezone=True), nullable=False, index=True),
    Column("key_digest", String(64), nullable=False, server_default=""),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key without its secret. ``rate_limit`` replaces the limits of the settings, such as ``100/minute``."""

    id: str
    name: str
    scope: Scope
    rate_limit: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None

    def state(self, now: datetime) -> Literal["valid", "expired", "revoked"]:
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "valid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Who has signed in to the pages. ``principal`` is the id of a key or of a user."""

    principal: str
    name: str
    scope: Scope
    key_digest: str = ""
    """Of the secret that opened it, if a key did."""


class KeyStore:
    """The API keys in the database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def new(
        self,
        name: str,
        scope: Scope,
        *,
        rate_limit: str = "",
        expires_at: datetime | None = None,
        now: datetime | None = None,
    ) -> tuple[ApiKey, str]:
        """A new key and its secret, which cannot be read again."""
        if not name.strip() or len(name) > MAX_NAME or not name.isprintable():
            raise InvalidRequest(f"a key needs a name of at most {MAX_NAME} characters")
        key_id, secret = secrets.token_hex(6), secrets.token_urlsafe(SECRET_BYTES)
        values = {
            "id": key_id,
            "name": name.strip(),
            "scope": scope,
            "rate_limit": rate_limit,
            "digest": digest(secret),
            "previous_digest": "",
            "created_at": now or datetime.now(UTC),
            "expires_at": expires_at,
        }
        with self._engine.begin() as connection:
            connection.execute(insert(_keys), values)
        return self._get(key_id), f"{PREFIX}{key_id}_{secret}"

    def all(self) -> tuple[ApiKey, ...]:
        """All keys that were ever made, oldest first."""
        with self._engine.connect() as connection:
            return tuple(_key(row) for row in connection.execute(select(_keys).order_by(_keys.c.created_at)))

    def any(self) -> bool:
        """Whether a key was ever made; a revoked one counts, so that revoking the last one opens nothing."""
        with self._engine.connect() as connection:
            return connection.execute(select(_keys.c.id).limit(1)).first() is not None

    def any_administrator(self) -> bool:
        """Whether a key of an administrator was ever made."""
        with self._engine.connect() as connection:
            return connection.execute(select(_keys.c.id).where(_keys.c.scope == "admin").limit(1)).first() is not None

    def revoke(self, key_id: str, now: datetime | None = None) -> ApiKey:
        """End a key. Raises `NotFound`."""
        self._change(key_id, {"revoked_at": now or datetime.now(UTC)})
        with self._engine.begin() as connection:
            connection.execute(delete(_sessions).where(_sessions.c.principal == principal_id(key_id)))
        return self._get(key_id)

    def rotate(self, key_id: str, grace: timedelta, now: datetime | None = None) -> tuple[ApiKey, str]:
        """Give a key a new secret; the old one works until ``grace`` is over, and sessions opened with it last as long.

        Raises `NotFound`, `InvalidRequest`.
        """
        now = now or datetime.now(UTC)
        if self._get(key_id).state(now) != "valid":
            raise InvalidRequest(f"the key {key_id} is no longer valid", hint="make a new one")
        secret = secrets.token_urlsafe(SECRET_BYTES)
        changes = {"previous_digest": _keys.c.digest, "previous_until": now + grace, "digest": digest(secret)}
        self._change(key_id, changes)
        return self._get(key_id), f"{PREFIX}{key_id}_{secret}"

    def authenticate(self, token: str, now: datetime | None = None) -> ApiKey | None:
        """The valid key with this secret, or None."""
        key_id, _, secret = token.removeprefix(PREFIX).partition("_")
        if not token.startswith(PREFIX) or not secret or len(key_id) > 16:
            return None
        now = now or datetime.now(UTC)
        with self._engine.connect() as connection:
            row = connection.execute(select(_keys).where(_keys.c.id == key_id)).first()
        if row is None or _key(row).state(now) != "valid":
            return None
        return _key(row) if _opens(row, digest(secret), now) else None

    def find(self, key_id: str) -> ApiKey | None:
        """The key with this id, valid or not."""
        with self._engine.connect() as connection:
            row = connection.execute(select(_keys).where(_keys.c.id == key_id)).first()
        return _key(row) if row is not None else None

    def of_session(self, session: Session, now: datetime | None = None) -> ApiKey | None:
        """The key that opened a session, if it is valid and so is the secret that was used."""
        key_id, now = session.principal.removeprefix(principal_id("")), now or datetime.now(UTC)
        with self._engine.connect() as connection:
            row = connection.execute(select(_keys).where(_keys.c.id == key_id)).first()
        if row is None or _key(row).state(now) != "valid":
            return None
        return _key(row) if _opens(row, session.key_digest, now) else None

    def _get(self, key_id: str) -> ApiKey:
        key = self.find(key_id)
        if key is None:
            raise NotFound(f"no key {key_id!r}")
        return key

    def _change(self, key_id: str, values: dict[str, Any]) -> None:
        with self._engine.begin() as connection:
            if not connection.execute(update(_keys).where(_keys.c.id == key_id).values(values)).rowcount:
                raise NotFound(f"no key {key_id!r}")


class SessionStore:
    """Sign-ins to the pages, shared by all replicas. The browser has the secret, the database its digest."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def open(self, session: Session, lasts: timedelta, now: datetime | None = None) -> str:
        """A new session; returns its secret. Ended ones are deleted."""
        secret, now = secrets.token_urlsafe(SECRET_BYTES), now or datetime.now(UTC)
        values = {
            "digest": digest(secret),
            "principal": session.principal,
            "name": session.name[:MAX_NAME],
            "scope": session.scope,
            "key_digest": session.key_digest,
            "expires_at": now + lasts,
        }
        with self._engine.begin() as connection:
            connection.execute(delete(_sessions).where(_sessions.c.expires_at <= now))
            connection.execute(insert(_sessions), values)
        return secret

    def find(self, secret: str, now: datetime | None = None) -> Session | None:
        query = select(_sessions).where(_sessions.c.digest == digest(secret))
        with self._engine.connect() as connection:
            row = connection.execute(query).first()
        if row is None or aware(row.expires_at) <= (now or datetime.now(UTC)):
            return None
        return Session(
            principal=row.principal,
            name=row.name,
            scope=cast(Scope, row.scope),
            key_digest=row.key_digest,
        )

    def close(self, secret: str) -> None:
        """Sign out."""
        with self._engine.begin() as connection:
            connection.execute(delete(_sessions).where(_sessions.c.digest == digest(secret)))


def principal_id(key_id: str) -> str:
    """Who a key stands for, wherever that is stored."""
    return f"key:{key_id}"


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def key_digest(token: str) -> str:
    """The digest of a stored key's secret."""
    return digest(token.removeprefix(PREFIX).partition("_")[2])


def _opens(row: Row[Any], presented: str, now: datetime) -> bool:
    """Whether this is the digest of a key's secret, or of the one before it while that still works."""
    previous = row.previous_digest if row.previous_until and aware(row.previous_until) > now else ""
    known = [hmac.compare_digest(presented, stored) for stored in (row.digest, previous)]
    return any(known)


def _key(row: Row[Any]) -> ApiKey:
    return ApiKey(
        id=row.id,
        name=row.name,
        scope=cast(Scope, row.scope),
        rate_limit=row.rate_limit,
        created_at=aware(row.created_at),
        expires_at=aware(row.expires_at) if row.expires_at is not None else None,
        revoked_at=aware(row.revoked_at) if row.revoked_at is not None else None,
    )
