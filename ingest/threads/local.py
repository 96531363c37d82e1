"""The stages on this machine: texts are embedded by threads, because an encoder releases the interpreter while it
computes; beyond the first items a process beside them reads, because reading is Python. Saved pages and large texts are
read there from the first one on, because it has bounds."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from trainmedic.ingest.items import Checkpoint, Discussion, Raw
from trainmedic.ingest.threads.stages import Embed, Embedded, Task, embedded, read, read_apart
from trainmedic.kb.confined import Confined

CHUNK = 16
"""Items that are read and embedded together."""
CHUNKS_AHEAD = 4
"""Chunks held in memory for each encoder thread: what a killed run has to do again."""
FEW = 512
"""Items that are read in this process before others are started, which takes a second."""
SMALL = 200_000
"""Code points of a text that is read in this process."""
CORES_PER_READER = 4
"""An encoder takes six times as long as reading."""
DEADLINE_S = 60.0
"""Seconds in which a chunk, or else each of its items, must be read."""
SWITCH_S = 0.000_5
"""How long a reading thread may hold the interpreter while another waits for it to embed its next text."""


class Local:
    """Runs the stages. ``few``: the number of items that are read in this process."""

    def __init__(self, embed: Embed, encoders: int | None = None, few: int = FEW) -> None:
        self._embed = embed
        self._encoders = encoders or max(2, os.cpu_count() or 1)
        self._few = few

    @property
    def ahead(self) -> int:
        """Items that are taken ahead of the results."""
        return CHUNK * CHUNKS_AHEAD * self._encoders

    def run(self, tasks: Iterable[Task | Checkpoint]) -> Generator[Embedded | Checkpoint, None, None]:
        """The results in the order of the tasks, with vectors.

        A bounded number of tasks is taken ahead of the results, none beyond a checkpoint before that was returned.
        """
        switch_s = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_S)
        stages = _Stages(self._embed, self._encoders, self._few)
        waiting: deque[Future[list[Embedded]]] = deque()
        chunk: list[Task] = []
        try:
            for task in tasks:
                if isinstance(task, Task):
                    chunk.append(task)
                    if len(chunk) == CHUNK:
                        waiting.append(stages.submit(chunk))
                        chunk = []
                    if len(waiting) * CHUNK >= self.ahead:
                        yield from waiting.popleft().result()
                    continue
                waiting.append(stages.submit(chunk))
                chunk = []
                while waiting:
                    yield from waiting.popleft().result()
                yield task
            waiting.append(stages.submit(chunk))
            while waiting:
                yield from waiting.popleft().result()
        finally:
            stages.close()
            sys.setswitchinterval(switch_s)


def _is_plain(item: Raw | Discussion) -> bool:
    """Whether no text can make reading the item take long."""
    if isinstance(item, Raw):
        return item.format != "html" and len(item.content) <= SMALL
    return sum(len(message.text) for message in item.messages) <= SMALL


class _Stages:
    def __init__(self, embed: Embed, encoders: int, few: int) -> None:
        self._embed, self._left = embed, few
        self._encoders = ThreadPoolExecutor(encoders, thread_name_prefix="embed")
        readers = max(1, encoders // CORES_PER_READER)
        self._waiting = ThreadPoolExecutor(readers, thread_name_prefix="read")
        self._readers = Confined(DEADLINE_S, processes=readers)

    def submit(self, chunk: list[Task]) -> Future[list[Embedded]]:
        self._left -= len(chunk)
        if self._left >= 0 and all(_is_plain(task.item) for task in chunk):
            return self._encoders.submit(embedded, read(chunk), self._embed)
        reading = self._waiting.submit(read_apart, chunk, self._readers)
        return self._encoders.submit(lambda: embedded(reading.result(), self._embed))

    def close(self) -> None:
        self._waiting.shutdown(wait=False, cancel_futures=True)
        self._readers.close()
        self._encoders.shutdown(cancel_futures=True)
