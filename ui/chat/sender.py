"""Who sends an event of the pages: what they may change, and how it is run, counted and noted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from trainmedic.kb.errors import Forbidden, NotFound
from trainmedic.service.access.gate import Refused, address_of, from_this_machine
from trainmedic.service.access.limits import client_of
from trainmedic.service.access.principals import ANYBODY, Principal
from trainmedic.service.access.slots import for_client
from trainmedic.service.answering import Executor
from trainmedic.ui.context import AppContext


class Sender:
    """The request behind an event, as the shell has found out who sent it. With none: anyone, on this machine."""

    def __init__(self, context: AppContext, scope: Mapping[str, Any]) -> None:
        self._scope = scope
        self._gate = context.gate if self._scope else None
        state = self._scope.get("state", {})
        self._principal: Principal = state.get("principal", ANYBODY)
        self.owner: str = state.get("owner") or self._principal.id
        """Whose what is asked is: a key's, else the browser's."""
        self.client = client_of(self._principal, address_of(self._scope))
        """Who is counted: a key, else an address."""
        self.run: Executor = for_client(self.client, context.executor)

    async def change(self, change: Callable[[str | None], None]) -> None:
        """Make a change to a conversation as its owner; None is an administrator's. Raises what ``change`` does."""
        if self._principal.may("admin"):
            await self.run(lambda: change(None))
            return
        if not self._principal.id and (not self._scope or from_this_machine(self._scope)):
            # What was asked without a key or a browser, as through the API, is of anyone on this machine.
            with suppress(Forbidden, NotFound):
                await self.run(lambda: change(""))
                return
        await self.run(lambda: change(self.owner))

    async def metered(self, action: str) -> bool:
        """Count an event that costs as much as a question; whether the sender may have one more."""
        if self._gate is not None:
            try:
                await self._gate.counted(self._scope, self._principal, asks=True)
            except Refused:
                await self._gate.record(self._scope, self._principal, action, "refused")
                return False
        return True

    async def note(self, action: str, target: str = "") -> None:
        """Write what was done into the audit log."""
        if self._gate is not None:
            await self._gate.record(self._scope, self._principal, action, "done", target)
