"""Embed threads on worker threads while the next ones are read, and store them in their order."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import MappingProxyType, TracebackType

import numpy as np
import numpy.typing as npt

from trainmedic.kb.threads.store import Entry, ThreadStore
from trainmedic.kb.threads.thread import Thread

WORKERS = 2
"""Jobs that are embedded at the same time: an encoder releases the interpreter while it computes."""
JOB = 48
"""Texts from which threads become one job; from 64 an encoder would use threads of its own."""
BATCH = 64
"""The least number of threads in one transaction, except for the last."""
AHEAD = 2 * BATCH
"""Threads that are held in memory: what a killed run has to do again."""
SWITCH_S = 0.000_5
"""How long a reader may hold the interpreter while a worker waits for it to start its next text."""
Array = npt.NDArray[np.float32]
Embed = Callable[[Sequence[str]], Array]
Explain = Callable[[Array], Mapping[str, float]]
"""What the curated knowledge takes the text of a vector for: mechanism → share."""
Reading = tuple[Thread, tuple[str, ...]]
"""A thread and its passages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    readings: tuple[Reading, ...]
    vectors: Future[Array]


class Bulk:
    """A context; threads are stored by `flush`, and once more than `AHEAD` are waiting.

    An error of the encoder is raised by the call that would store what it failed for. Leaving with an error drops what
    is not stored.
    """

    def __init__(self, store: ThreadStore, embed: Embed, explain: Explain) -> None:
        self._store, self._embed, self._explain = store, embed, explain
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="embed")
        self._next: list[Reading] = []
        self._texts = 0
        self._jobs: deque[Job] = deque()
        self._waiting = 0
        self._switch_s = sys.getswitchinterval()

    def __enter__(self) -> Bulk:
        sys.setswitchinterval(SWITCH_S)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._pool.shutdown(cancel_futures=True)
        sys.setswitchinterval(self._switch_s)

    def add(self, reading: Reading) -> None:
        self._next.append(reading)
        self._texts += len(_texts(reading))
        if self._texts >= JOB:
            self._submit()
        if self._waiting + len(self._next) >= AHEAD:
            self._put_batch()

    def flush(self) -> None:
        """Embed and store everything that was added."""
        self._submit()
        while self._jobs:
            self._put_batch()

    def _submit(self) -> None:
        if self._next:
            texts = [text for reading in self._next for text in _texts(reading)]
            self._jobs.append(Job(readings=tuple(self._next), vectors=self._pool.submit(self._embed, texts)))
            self._waiting += len(self._next)
            self._next, self._texts = [], 0

    def _put_batch(self) -> None:
        """Store the oldest jobs: all of them or, if the process is killed, none."""
        entries: list[Entry] = []
        while self._jobs and len(entries) < BATCH:
            job = self._jobs.popleft()
            self._waiting -= len(job.readings)
            entries += self._entries(job)
        self._store.put(entries)

    def _entries(self, job: Job) -> list[Entry]:
        vectors, start, entries = job.vectors.result(), 0, []
        for reading in job.readings:
            thread, passages = reading
            rows = vectors[start : start + len(_texts(reading))]
            start += len(rows)
            if thread.resolution:
                thread = replace(thread, mechanisms=MappingProxyType(dict(self._explain(rows[-1]))))
            entries.append(Entry(thread=thread, passages=passages, vectors=rows[: len(passages)]))
        return entries


def _texts(reading: Reading) -> tuple[str, ...]:
    """The passages, and of a resolved thread what it turned out to be about."""
    thread, passages = reading
    return (*passages, resolution_of(thread)) if thread.resolution else passages


def resolution_of(thread: Thread) -> str:
    """What was seen, then what resolved it."""
    return "\n".join((thread.title, *(quote.text for quote in thread.resolution)))
