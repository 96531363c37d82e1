"""Decides about each request before its body is read: who sends it, whether they may, and whether it is too many."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

from cachetools import TTLCache
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool

from trainmedic.kb.errors import Forbidden, NotFound, RateLimited, StoreError, TrainmedicError, Unauthorized
from trainmedic.service.access.audit_log import AuditEntry, AuditLog
from trainmedic.service.access.keys import Scope
from trainmedic.service.access.limits import Budget, RateLimits
from trainmedic.service.access.principals import ANYBODY, Access, Principal
from trainmedic.service.access.proxies import FORWARDED, peer_of
from trainmedic.service.access.scopes import Requirement
from trainmedic.service.settings import Settings

WELCOME_S = 3600.0
"""Seconds for which a shared key is still accepted from an address that then sends wrong ones."""
REFUSAL_S = 60.0
REFUSALS = frozenset({"401", "403", "429", "refused"})
UNAUTHORIZED_HINT = "send Authorization: Bearer <key>"
log = logging.getLogger("trainmedic.access")


@dataclass(frozen=True, slots=True)
class Admission:
    """A request that may go on. ``headers`` belong to its response."""

    principal: Principal
    headers: Mapping[str, str] = field(default_factory=dict)


class Refused(Exception):
    """A request that ends here: the error, headers of the response, and who sent it if that is known."""

    def __init__(
        self, error: TrainmedicError, headers: Mapping[str, str] | None = None, principal: Principal = ANYBODY
    ) -> None:
        super().__init__(error.message)
        self.error = error
        self.headers = {**headers_of(error), **(headers or {})}
        self.principal = principal


class Gate:
    """Shared by the API and the pages."""

    def __init__(
        self,
        settings: Settings,
        access: Access | None = None,
        limits: RateLimits | None = None,
        audit_log: AuditLog | None = None,
    ) -> None:
        self.access = access or Access(settings)
        self._limits = limits or RateLimits(settings)
        self._audit_log = audit_log
        self._refusals: TTLCache[tuple[str, str, str, str], bool] = TTLCache(4_096, REFUSAL_S)
        self._welcome: TTLCache[tuple[str, str], bool] = TTLCache(4_096, WELCOME_S)

    async def admit(self, scope: Mapping[str, Any], needed: Requirement) -> Admission:
        """Who sends a request to the API. Raises `Refused`."""
        try:
            return await self._admit(scope, needed)
        except SQLAlchemyError as error:
            raise Refused(StoreError("the database cannot be reached", hint="try again")) from error

    async def _admit(self, scope: Mapping[str, Any], needed: Requirement) -> Admission:
        principal = ANYBODY
        if needed == "probe":  # also without the database
            return Admission(principal)
        if needed in ("read", "ask", "admin") and (needed == "admin" or await self.access.required()):
            if needed == "admin" and not await self.access.administrators():
                raise Refused(NotFound("no administrator is configured", hint="set TRAINMEDIC_ADMIN_KEYS"))
            principal = await self.identified(scope)
        headers = await self.counted(scope, principal, asks=needed == "ask")
        if needed in ("read", "ask", "admin") and not principal.may(_scope(needed)) and principal is not ANYBODY:
            raise Refused(Forbidden(f"this key may not do that: it needs the scope {needed}"), headers, principal)
        return Admission(principal, headers)

    async def record(
        self, scope: Mapping[str, Any], principal: Principal, action: str, result: str, target: str = ""
    ) -> None:
        """Note in the audit log what was done. Refusals of the same kind are noted once in `REFUSAL_S`."""
        audit_log, address, peer = self._audit_log, address_of(scope), peer_of(scope)
        if audit_log is None:
            return
        if result in REFUSALS:
            kind = (principal.id, address, action, result)
            if kind in self._refusals:
                return
            self._refusals[kind] = True
        entry = AuditEntry(
            who=principal.id,
            name=principal.name,
            action=action,
            result=result,
            target=target,
            address=f"{address} via {peer}" if peer else address,
            trace_id=str(scope.get("state", {}).get("trace_id", "")),
        )
        try:
            await run_in_threadpool(audit_log.add, entry)
        except SQLAlchemyError as error:
            log.warning("the audit log could not be written: %s", type(error).__name__)

    async def identified(self, scope: Mapping[str, Any]) -> Principal:
        """Who the bearer key stands for. Raises `Refused`."""
        authorization = dict(scope["headers"]).get(b"authorization", b"")
        if not authorization:
            await self.counted(scope, ANYBODY, asks=False)
            raise _unauthorized()
        principal = await self.access.bearer(authorization)
        if principal is not None and await self.trusts(principal, scope):
            return principal
        await self.attempted(scope)
        raise _unauthorized()

    async def trusts(self, principal: Principal, scope: Mapping[str, Any]) -> bool:
        """Whether to believe a key from an address that may have been guessing.

        A stored key cannot be guessed. One that people made up can, so from an address that has used up its attempts it
        only counts if it was used from there before.
        """
        if not principal.shared:
            return True
        address = address_of(scope)
        if (principal.id, address) not in self._welcome and await self._limits.login_spent(address, peer_of(scope)):
            return False
        self._welcome[principal.id, address] = True
        return True

    async def attempted(self, scope: Mapping[str, Any]) -> Mapping[str, str]:
        """Count a wrong key or an attempt to sign in. Raises `Refused` if there were too many."""
        budget = await self._limits.spend_login(address_of(scope), peer_of(scope))
        if budget.spent:
            raise _too_many(budget, "attempts to sign in")
        return budget.headers

    async def counted(self, scope: Mapping[str, Any], principal: Principal, *, asks: bool) -> Mapping[str, str]:
        """Count a request; returns headers of its response. Raises `Refused` if there were too many."""
        if not principal.id and not await self._limited(scope):
            return {}
        budget = await self._limits.spend(principal, address_of(scope), asks=asks)
        if budget.spent:
            raise _too_many(budget, "requests", principal)
        return budget.headers

    async def _limited(self, scope: Mapping[str, Any]) -> bool:
        """Whether requests without a key are counted: not on one's own machine, where the service is open."""
        return await self.access.required() or (bool(address_of(scope)) and not from_this_machine(scope))


def headers_of(error: TrainmedicError) -> dict[str, str]:
    """The headers that belong to every response of this kind."""
    if error.kind == "unauthorized":
        return {"WWW-Authenticate": "Bearer"}  # RFC 9110 requires it with every 401
    return {"Retry-After": "1"} if error.kind in ("unavailable", "rate_limited") else {}


def from_this_machine(scope: Mapping[str, Any]) -> bool:
    """Whether the client runs on this machine, and is not a proxy for another one."""
    host, _ = scope.get("client") or ("", 0)
    try:
        local = ip_address(host).is_loopback
    except ValueError:
        return False
    return local and not dict(scope["headers"]).keys() & FORWARDED


def address_of(scope: Mapping[str, Any]) -> str:
    """The address of the client; empty if it has none, as over a Unix socket."""
    host, _ = scope.get("client") or ("", 0)
    try:
        return str(ip_address(host))
    except ValueError:
        return ""


def _scope(needed: Requirement) -> Scope:
    return needed if needed in ("read", "ask", "admin") else "read"


def _unauthorized() -> Refused:
    return Refused(Unauthorized("a valid key is needed", hint=UNAUTHORIZED_HINT))


def _too_many(budget: Budget, what: str, principal: Principal = ANYBODY) -> Refused:
    return Refused(
        RateLimited(f"too many {what}: at most {budget.limit}", hint=f"try again in {max(1, budget.reset_s)} s"),
        budget.headers,
        principal,
    )
