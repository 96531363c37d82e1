"""Looking after a running service: which version of the knowledge is served, renewing it, going back."""

from __future__ import annotations

from typing import Annotated, Protocol

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool

from trainmedic.kb.store.sources import PageChanges
from trainmedic.service.access.scopes import ADMIN_PREFIX
from trainmedic.service.api.resources import ServedIndex
from trainmedic.service.api.schemas import RollbackIn

VersionName = Annotated[str, Query(min_length=1, max_length=64)]


class Library(Protocol):
    """The versions of the knowledge behind a running service. Its methods block."""

    def served(self) -> ServedIndex:
        """The version in use and those that are kept."""
        ...

    def changes(self, before: str, after: str) -> PageChanges:
        """The pages that the version ``after`` changed. Raises `NotFound`."""
        ...

    def reload(self) -> bool:
        """Serve the pages as they are; whether that changed anything."""
        ...

    def roll_back(self, name: str | None) -> None:
        """Serve a version until told otherwise; None: the pages as they are. Raises `NotFound` or `StoreError`."""
        ...


def make_admin_router(library: Library) -> APIRouter:
    router = APIRouter(prefix=ADMIN_PREFIX, tags=["admin"])

    # Not by the worker of the questions: building an index may take longer than they may.
    @router.get("/index")
    async def index() -> ServedIndex:
        """The version in use, those that are kept, and why changed pages are not used."""
        return await run_in_threadpool(library.served)

    @router.get("/index/diff")
    async def diff(before: VersionName, after: VersionName) -> PageChanges:
        """The pages that one version adds, changes and removes against another."""
        return await run_in_threadpool(library.changes, before, after)

    @router.post("/reload")
    async def reload() -> ServedIndex:
        """Serve the pages as they are now. Pages with problems are not used; ``problem`` names them."""
        await run_in_threadpool(library.reload)
        return await run_in_threadpool(library.served)

    @router.post("/rollback")
    async def rollback(body: RollbackIn) -> ServedIndex:
        """Serve an earlier version whatever the pages say; without ``id``, the pages as they are again."""
        await run_in_threadpool(library.roll_back, body.id)
        return await run_in_threadpool(library.served)

    return router
