"""Renewing the knowledge of a running service when its pages change, or when it is told to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import TypeAlias

from trainmedic.kb.errors import TrainmedicError
from trainmedic.kb.mask import mask
from trainmedic.kb.store import index
from trainmedic.kb.store.sources import PageChanges
from trainmedic.kb.threads.store import FILE
from trainmedic.service.advisor import Advisor
from trainmedic.service.api.resources import ServedIndex
from trainmedic.service.question.request import Ask
from trainmedic.service.ranking.knowledge import Knowledge
from trainmedic.service.settings import Settings
from trainmedic.ui.loading import THREADS, Pages, index_root, knowledge_of, load_version, read_pages
from trainmedic.ui.versions import list_versions, page_changes, roll_back

PAGE_FILES = (".md", ".yaml", ".py")
WARMING = "loss is nan"
"""A question for new knowledge before anybody else asks one."""
log = logging.getLogger("trainmedic.reload")
State: TypeAlias = tuple[object, ...]


class Reloader:
    """Builds the index of changed pages beside the one in use and swaps both at once.

    Pages with new problems are not used: what is served stays, and `problem` says why. ``read`` and ``make`` are the
    steps of loading, for knowledge that does not come from the settings.
    """

    def __init__(
        self,
        settings: Settings,
        advisor: Advisor,
        *,
        read: Callable[[], Pages] | None = None,
        make: Callable[[Pages], Knowledge] | None = None,
        seen: State | None = None,
    ) -> None:
        """``seen`` is the `state_of` the pages when the advisor's knowledge was loaded; by default that of now."""
        self.problem: str | None = None
        self._settings = settings
        self._advisor = advisor
        self._read = read or (lambda: read_pages(settings.extra_pages))
        self._make = make or (lambda pages: knowledge_of(settings, pages, advisor.knowledge.embedder))
        self._seen = seen if seen is not None else state_of(settings)
        self._lock = Lock()

    def reload(self) -> bool:
        """Serve the pages as they are, or the pinned version. Returns whether the knowledge was renewed."""
        with self._lock:
            try:
                knowledge = self._loaded()
                if knowledge is not None:
                    # Also fills what is computed at first use, and fails here if it fails at all.
                    Advisor(knowledge).prepare(Ask(question=WARMING))
                    self._advisor.renew(knowledge)
                    log.info("the knowledge is now of version %s", knowledge.index.manifest.id)
                self.problem = None
                return knowledge is not None
            except Exception as error:  # whatever a page does: the knowledge in use answers on
                reason = error.message if isinstance(error, TrainmedicError) else f"{type(error).__name__}: {error}"
                self.problem = mask(reason).text
                log.warning("the changed pages are not used, the old ones are served: %s", self.problem)
                return False

    def _loaded(self) -> Knowledge | None:
        """The knowledge to serve; None if it is served already. Raises any error of loading."""
        current = self._advisor.knowledge
        pinned = index.pinned(index_root(self._settings))
        if pinned is not None:
            served = current.index.manifest.id == pinned
            return None if served else load_version(self._settings, pinned, current.embedder)
        pages = self._read()
        accepted = {*current.rules.failures, *current.cases.failures}
        broken = [problem for problem in pages.failures if problem not in accepted]
        if broken:
            raise BrokenPages("; ".join(map(str, broken[:5])))
        threads = (self._settings.data_dir / THREADS / FILE).exists()
        same_threads = threads == (current.threads is not None)
        if same_threads and pages.index_id(current.embedder.identity) == current.index.manifest.id:
            return None
        return self._make(pages)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Look for changes every ``reload_s`` seconds; not at all if that is 0."""
        watching = asyncio.create_task(self._watch()) if self._settings.reload_s else None
        try:
            yield
        finally:
            if watching is not None:
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)

    async def _watch(self) -> None:
        latest = self._seen
        while True:
            await asyncio.sleep(self._settings.reload_s)
            before, latest = latest, await asyncio.to_thread(state_of, self._settings)
            # A file that still changes from one look to the next may be half written.
            if latest == before and latest != self._seen:
                self._seen = latest
                await asyncio.to_thread(self.reload)

    async def trouble(self) -> str | None:
        """The probe of ``/readyz``."""
        return self.problem

    def served(self) -> ServedIndex:
        knowledge = self._advisor.knowledge
        return ServedIndex(
            in_use=knowledge.index.manifest.id,
            kb_version=knowledge.cases.version,
            ruleset_version=knowledge.rules.version,
            problem=self.problem,
            versions=list_versions(self._settings),
        )

    def changes(self, before: str, after: str) -> PageChanges:
        """The pages that the version ``after`` changed. Raises `NotFound`."""
        return page_changes(self._settings, before, after)

    def roll_back(self, name: str | None) -> None:
        """Serve a version until told otherwise; None: the pages as they are. Raises `NotFound` or `StoreError`."""
        roll_back(self._settings, name)
        self.reload()


class BrokenPages(TrainmedicError):
    """Changed pages do not follow their format."""

    code = "invalid_page"
    kind = "invalid"


def state_of(settings: Settings) -> State:
    """Changes with every file of one's own pages, with the pinned version, and when the first threads are ingested."""
    files = []
    for root in settings.extra_pages:
        for path in [root] if root.is_file() else sorted(root.rglob("*")):
            if path.suffix in PAGE_FILES:
                with suppress(OSError):
                    status = path.stat()
                    files.append((str(path), status.st_mtime_ns, status.st_size))
    threads: Path = settings.data_dir / THREADS / FILE
    return (tuple(files), index.pinned(index_root(settings)), threads.exists())
