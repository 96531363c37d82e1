"""Looking after the knowledge of a running service: what is served, and renewing it."""

from __future__ import annotations

from typing import Protocol

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool

from trainmedic.service.access.scopes import ADMIN_PREFIX
from trainmedic.service.api.resources import ServedIndex


class Library(Protocol):
    """The knowledge behind a running service. ``reload`` blocks."""

    def served(self) -> ServedIndex: ...

    def reload(self) -> bool:
        """Serve the pages as they are; whether that changed anything."""
        ...


def make_admin_router(library: Library) -> APIRouter:
    router = APIRouter(prefix=ADMIN_PREFIX, tags=["admin"])

    @router.get("/index")
    async def index() -> ServedIndex:
        """The index in use, and why changed pages are not used."""
        return library.served()

    # Not by the worker of the questions: building an index may take longer than they may.
    @router.post("/reload")
    async def reload() -> ServedIndex:
        """Serve the pages as they are now. Pages with problems are not used; ``problem`` names them."""
        await run_in_threadpool(library.reload)
        return library.served()

    return router
