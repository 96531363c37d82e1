"""Reads what is pasted once, and in processes of its own, so that hostile text costs nothing but its own request.

A thread cannot be stopped, and a regular expression does not let other threads run: a text that takes too long to read
would hold every request. A process can be killed; its successor is forked from a server that has the readers loaded.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from hashlib import blake2b
from multiprocessing import forkserver
from threading import Lock
from typing import TypeAlias

from cachetools import LRUCache
from pebble import ProcessExpired, ProcessFuture, ProcessPool

import trainmedic.kb.picklable  # noqa: F401
from trainmedic.kb.errors import TooLarge, TrainmedicError
from trainmedic.kb.model.evidence import Evidence, Read
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse

PRELOAD = ("trainmedic.service.dialogue.reader_preload", __name__)
_FORKS_FROM_SERVER = "forkserver" in multiprocessing.get_all_start_methods()
_Task: TypeAlias = tuple[str, tuple[Attachment, ...]]


KEPT_CHARACTERS = 16_000_000
"""Code points of the texts whose readings are kept."""
LEAST = KEPT_CHARACTERS // 128
"""Code points that a short text counts for: at most 128 readings are kept."""


class ReadOnce:
    """A reader that reads each question with its files once, as long as it is among the latest.

    A conversation is read with each of its questions, and a file for each thing that is asked of it.
    """

    def __init__(self, read: Read, characters: int = KEPT_CHARACTERS, least: int = LEAST) -> None:
        self._read = read
        self._latest: LRUCache[bytes, Evidence] = LRUCache(characters, partial(_weight, least=least))
        self._lock = Lock()

    def __call__(self, question: str, attachments: Sequence[Attachment] = ()) -> Evidence:
        """The evidence in question and files. What the reader raises is not kept."""
        key = _digest(question, attachments)
        with self._lock:
            kept = self._latest.get(key)
        if kept is not None:
            return kept
        evidence = self._read(question, attachments)
        with self._lock, suppress(ValueError):  # more than all that is kept
            self._latest[key] = evidence
        return evidence


def _weight(evidence: Evidence, least: int) -> int:
    return max(least, sum(len(source.text) for source in evidence.sources))


def _digest(question: str, attachments: Sequence[Attachment]) -> bytes:
    digest = blake2b(digest_size=16)
    for text in (question, *(part for item in attachments for part in (item.name, item.content))):
        data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        digest.update(f"{type(text).__name__} {len(data)} ".encode())
        digest.update(data)
    return digest.digest()


class ReadingTimeout(TrainmedicError):
    """A text takes too long to read; its process was killed."""

    code = "reading_timeout"
    kind = "timeout"


class ReadingPool:
    """Processes that read, each for at most ``timeout_s`` and within ``memory`` bytes of address space.

    Outside of `running`, and without processes, `read` reads in the calling thread.
    """

    def __init__(self, processes: int, timeout_s: float, memory: int, reader: Read = parse) -> None:
        self._processes = processes
        self._timeout_s = timeout_s
        self._memory = memory
        self._reader = reader
        self._starting: Future[ProcessPool] | None = None
        self._renewing = Lock()

    def preload(self) -> None:
        """Begin to load the readers in the background; returns at once."""
        if self._processes and _FORKS_FROM_SERVER:
            multiprocessing.get_context("forkserver").set_forkserver_preload(list(PRELOAD))
            forkserver.ensure_running()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Read in processes until the context closes, which ends all of them."""
        if not self._processes:
            yield
            return
        self.preload()
        with ThreadPoolExecutor(1) as starter:  # processes start slowly, and the service has other things to do
            self._starting = starter.submit(self._started)
            try:
                yield
            finally:
                starting, self._starting = self._starting, None
                pool = await asyncio.wrap_future(starting)
                pool.stop()  # type: ignore[no-untyped-call]
                await asyncio.to_thread(pool.join)

    def _started(self) -> ProcessPool:
        # Not fork: the service has threads, and a lock that one of them holds would stay locked in the child.
        context = multiprocessing.get_context("forkserver" if _FORKS_FROM_SERVER else "spawn")
        pool = ProcessPool(max_workers=self._processes, initializer=_prepare, initargs=(self._memory,), context=context)
        pool.schedule(_ready)
        return pool

    def _schedule(self, starting: Future[ProcessPool], task: _Task) -> ProcessFuture[Evidence]:
        try:
            return starting.result().schedule(self._reader, args=task, timeout=self._timeout_s)
        except RuntimeError:  # a broken pool stays broken
            with self._renewing:
                if self._starting is starting:
                    self._starting = Future()
                    self._starting.set_result(self._started())
            renewed = (self._starting or starting).result()
            return renewed.schedule(self._reader, args=task, timeout=self._timeout_s)

    def read(self, question: str, attachments: Sequence[Attachment] = ()) -> Evidence:
        """`kb.parse.pipeline.parse`. Raises `ReadingTimeout`, or `TooLarge` for what the process had no memory for."""
        starting = self._starting
        if starting is None:
            return self._reader(question, attachments)
        reading = self._schedule(starting, (question, tuple(attachments)))
        try:
            return reading.result()
        except TimeoutError as error:
            raise ReadingTimeout(
                f"what was sent could not be read within {self._timeout_s:g} s", hint="send less of it, as text"
            ) from error
        except (MemoryError, ProcessExpired) as error:
            raise TooLarge(
                "what was sent could not be read within the memory for one request", hint="send less of it"
            ) from error


def _prepare(memory: int) -> None:
    """Bound the address space of this process, where the system can."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _ready() -> None:
    """A task without work: the pool starts its processes with the first."""
