"""Reads what is pasted once, and in processes of its own, so that hostile text costs nothing but its own request.

A thread cannot be stopped, and a regular expression does not let other threads run: a text that takes too long to read
would hold every request. A process can be killed; its successor is forked from a server that has the readers loaded.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from hashlib import blake2b
from multiprocessing import forkserver
from threading import Lock

from cachetools import LRUCache

from trainmedic.kb.confined import START_METHOD, Confined, Exceeded, TookTooLong
from trainmedic.kb.errors import TooLarge, TrainmedicError
from trainmedic.kb.frameworks.tables import read_so_far
from trainmedic.kb.model.evidence import Evidence, Read
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse

PRELOAD = ("trainmedic.service.dialogue.reader_preload", "trainmedic.kb.sources.reader", __name__)

KEPT_CHARACTERS = 16_000_000
"""Code points of the texts whose readings are kept."""
LEAST = KEPT_CHARACTERS // 128
"""Code points that a short text counts for: at most 128 readings are kept."""


class ReadOnce:
    """A reader that reads each question with its files once, as long as it is among the latest.

    A conversation is read with each of its questions, and a file for each thing that is asked of it. Once a further
    release is known, they are read again.
    """

    def __init__(self, read: Read, characters: int = KEPT_CHARACTERS, least: int = LEAST) -> None:
        self._read = read
        self._latest: LRUCache[tuple[int, bytes], Evidence] = LRUCache(characters, partial(_weight, least=least))
        self._lock = Lock()

    def __call__(self, question: str, attachments: Sequence[Attachment] = ()) -> Evidence:
        """The evidence in question and files. What the reader raises is not kept."""
        key = (read_so_far(), _digest(question, attachments))
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
        self._reader = reader
        self._confined = Confined(timeout_s, memory, processes)
        self._running = False

    def preload(self) -> None:
        """Begin to load the readers in the background; returns at once."""
        if self._processes and START_METHOD == "forkserver":
            multiprocessing.get_context(START_METHOD).set_forkserver_preload(list(PRELOAD))
            forkserver.ensure_running()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Read in processes until the context closes, which ends all of them."""
        if not self._processes:
            yield
            return
        self.preload()
        # Processes start slowly, and the service has other things to do.
        starting = asyncio.create_task(asyncio.to_thread(self._confined.start))
        self._running = True
        try:
            yield
        finally:
            self._running = False
            await starting
            await asyncio.to_thread(self._confined.close)

    def read(self, question: str, attachments: Sequence[Attachment] = ()) -> Evidence:
        """`kb.parse.pipeline.parse`. Raises `ReadingTimeout`, or `TooLarge` for what the process had no memory for."""
        if not self._running:
            return self._reader(question, attachments)
        try:
            return self._confined.run(self._reader, question, tuple(attachments))
        except TookTooLong as error:
            raise ReadingTimeout(
                f"what was sent could not be read within {self._timeout_s:g} s", hint="send less of it, as text"
            ) from error
        except Exceeded as error:
            raise TooLarge(
                "what was sent could not be read within the memory for one request", hint="send less of it"
            ) from error
