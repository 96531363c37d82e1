"""Several services behind one address: each request goes to that of the team it comes from.

A team's service has knowledge, threads, index, history and metrics of its own, so that nothing of it can reach another
team by whatever way an answer is made. Its gate refuses everybody else once more.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy.exc import SQLAlchemyError
from starlette.types import ASGIApp, Receive, Scope, Send

from trainmedic.service.api.access import Access, Principal
from trainmedic.service.api.scopes import requirement
from trainmedic.ui.chat.entry import COOKIE, STORED, cookie


class TeamDispatch:
    """The ASGI application in front of the service for everybody and those of the teams."""

    def __init__(self, app: ASGIApp, access: Access, teams: Mapping[str, ASGIApp]) -> None:
        self._app, self._access, self._teams = app, access, teams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        team = await self._team(scope) if scope["type"] == "http" else ""
        await self._teams.get(team, self._app)(scope, receive, send)

    async def _team(self, scope: Scope) -> str:
        """The team of a request; empty if it has none, or if only the gate can say what is wrong with it."""
        try:
            principal = await self._principal(scope)
        except SQLAlchemyError:
            return ""
        return principal.team if principal is not None else ""

    async def _principal(self, scope: Scope) -> Principal | None:
        headers = dict(scope["headers"])
        value = cookie(headers, COOKIE) or ""
        # As the gate and the pages do: only the pages look at cookies, and they look at these first.
        if requirement(scope["method"], scope["path"])[1] == "pages" and value.startswith(STORED):
            return await self._access.session(value.removeprefix(STORED))
        authorization = headers.get(b"authorization")
        return await self._access.bearer(authorization) if authorization else None
