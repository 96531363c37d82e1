"""Renewing the knowledge of a running service when its pages change, when its index is whole, or when it is told to."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TypeAlias

from trainmedic.kb.errors import TrainmedicError
from trainmedic.kb.mask import mask
from trainmedic.kb.store.index import open_index
from trainmedic.kb.threads.store import FILE
from trainmedic.service.advisor import Advisor
from trainmedic.service.api.resources import ServedIndex
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.ranking.knowledge import Knowledge
from trainmedic.service.settings import Settings
from trainmedic.ui.indexing import Percent, add_vectors
from trainmedic.ui.loading import THREADS, index_root, knowledge_of, read_pages

PAGE_FILES = (".md", ".yaml", ".py")
WARMING = "loss is nan"
"""A question for new knowledge before anyone else asks one."""
SETTLE_S = 3.0
"""Seconds after a start until texts are embedded: the first questions need both cores."""
EVERY_S = 2.0
"""Seconds between two looks for changed pages."""
LOOK_S = 0.5
"""Seconds between two looks whether the index in use has words only."""
RETRY_S = 60.0
"""Seconds until embedding that failed is tried again, and a reload whose failure the pages may have no part in."""
log = logging.getLogger("trainmedic.reload")
State: TypeAlias = tuple[object, ...]


class Reloader:
    """Builds the index of changed pages beside the one in use and swaps both at once.

    Pages with new problems are not used: what is served stays, and `problem` says why. An index of words only is made
    whole beside the requests, by ``embed``. What fails though the pages are sound is tried again after ``retry_s``.
    """

    def __init__(
        self,
        settings: Settings,
        advisor: Advisor,
        *,
        embed: Callable[[Settings, str, Percent], Awaitable[None]] = add_vectors,
        seen: State | None = None,
        retry_s: float = RETRY_S,
        every_s: float = EVERY_S,
    ) -> None:
        """``seen`` is the `state_of` the pages when the advisor's knowledge was loaded; by default that of now."""
        self.problem: str | None = None
        self._broken = False
        """The problem is in the pages, which only another change of them mends."""
        self._settings = settings
        self._advisor = advisor
        self._embed = embed
        self._retry_s, self._every_s = retry_s, every_s
        self._seen = seen if seen is not None else state_of(settings)
        self._lock = Lock()

    def reload(self) -> bool:
        """Serve the pages as they are. Returns whether the knowledge was renewed."""
        with self._lock:
            try:
                knowledge = self._loaded()
                if knowledge is not None:
                    # Also fills what is computed at first use, and fails here if it fails at all.
                    Advisor(knowledge, self._advisor.read).prepare(Ask(question=WARMING))
                    self._advisor.renew(knowledge)
                    log.info("the knowledge is now of version %s", knowledge.index.manifest.id)
                self.problem = None
                return knowledge is not None
            except Exception as error:  # whatever a page does: the knowledge in use answers on
                self.problem, self._broken = _reason(error), isinstance(error, BrokenPages)
                log.warning("the changed pages are not used, the old ones are served: %s", self.problem)
                return False

    def _loaded(self) -> Knowledge | None:
        """The knowledge to serve; None if it is served already. Raises any error of loading."""
        current = self._advisor.knowledge
        pages = read_pages(self._settings.extra_pages)
        accepted = {*current.rules.failures, *current.cases.failures}
        broken = [problem for problem in pages.failures if problem not in accepted]
        if broken:
            raise BrokenPages("; ".join(map(str, broken[:5])))
        threads = (self._settings.data_dir / THREADS / FILE).exists()
        same_threads = threads == (current.threads is not None)
        if same_threads and pages.index_id(current.embedder.identity) == current.index.manifest.id:
            return None
        # A whole index answers until the next one is whole.
        return knowledge_of(self._settings, pages, current.embedder, at_once=current.index.words_only)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Make the index whole, and look for changes every ``every_s`` seconds."""
        tasks = [asyncio.create_task(self._complete()), asyncio.create_task(self._watch())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _complete(self) -> None:
        await asyncio.sleep(SETTLE_S)
        while True:
            name = self._served_words()
            if name is not None:
                embedding = asyncio.create_task(self._add_vectors(name))
                try:
                    # Changed pages have an index of their own, which needs other vectors.
                    while not embedding.done() and self._served_words() == name:
                        await asyncio.wait((embedding,), timeout=LOOK_S)
                finally:
                    embedding.cancel()
                    await asyncio.gather(embedding, return_exceptions=True)
            await asyncio.sleep(LOOK_S)

    def _served_words(self) -> str | None:
        """The id of the index in use if it has words only."""
        opened = self._advisor.knowledge.index
        return opened.manifest.id if opened.words_only else None

    async def _add_vectors(self, name: str) -> None:
        def report(percent: int) -> None:
            self._advisor.embedded_percent = percent

        report(0)
        log.warning("the search index is being built; until it is whole, answers search by words only")
        try:
            await self._embed(self._settings, name, report)
            await asyncio.to_thread(self._use_vectors, name)
        except Exception as error:  # whatever the embedder does: the words answer on
            self.problem = _reason(error)
            log.warning("the search index cannot be built, answers search by words only: %s", self.problem)
            await asyncio.sleep(self._retry_s)

    def _use_vectors(self, name: str) -> None:
        with self._lock:
            current = self._advisor.knowledge
            if current.index.manifest.id == name:
                opened = open_index(index_root(self._settings) / name, current.embedder)
                knowledge = replace(current, index=opened)
                Advisor(knowledge, self._advisor.read).prepare(Ask(question=WARMING))
                self._advisor.renew(knowledge)
                self.problem = None
                log.info("the index %s has its vectors now", name)

    async def _watch(self) -> None:
        latest, failed_at = self._seen, 0.0
        while True:
            await asyncio.sleep(self._every_s)
            before, latest = latest, await asyncio.to_thread(state_of, self._settings)
            again = failed_at and time.monotonic() - failed_at >= self._retry_s
            # A file that still changes from one look to the next may be half written.
            if latest == before and (latest != self._seen or again):
                self._seen = latest
                await asyncio.to_thread(self.reload)
                failed_at = time.monotonic() if self.problem is not None and not self._broken else 0.0

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
        )


def _reason(error: Exception) -> str:
    reason = error.message if isinstance(error, TrainmedicError) else f"{type(error).__name__}: {error}"
    return mask(reason).text


class BrokenPages(TrainmedicError):
    """Changed pages do not follow their format."""

    code = "invalid_page"
    kind = "invalid"


def state_of(settings: Settings) -> State:
    """Changes with every file of one's own pages, and when the first threads are ingested."""
    files = []
    for root in settings.extra_pages:
        for path in [root] if root.is_file() else sorted(root.rglob("*")):
            if path.suffix in PAGE_FILES:
                with suppress(OSError):
                    status = path.stat()
                    files.append((str(path), status.st_mtime_ns, status.st_size))
    threads: Path = settings.data_dir / THREADS / FILE
    return (tuple(files), threads.exists())
