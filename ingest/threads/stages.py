"""The stages of a bulk run: an item is read to a thread with passages, these are embedded. Everything here can be sent
to another process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from trainmedic.ingest.items import Discussion, Raw, masked
from trainmedic.ingest.threads.facts import Facts, Reading, digest_of, facts_of, read_item
from trainmedic.kb.confined import Confined, Exceeded

BATCH = 48
"""Texts that are embedded in one call; from 64 the default encoder would use threads of its own."""
Array = npt.NDArray[np.float32]
Embed = Callable[[Sequence[str]], Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """An item of a source; ``digest`` is that of the stored thread, None if there is none. ``drafted``: its facts are
    wanted for a draft."""

    source: str
    item: Raw | Discussion
    digest: str | None
    drafted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The outcome for an item. Only a new or changed one has a ``reading``. ``reason`` says why it has ``failed``."""

    origin: str
    state: Literal["added", "changed", "unchanged", "failed"]
    reading: Reading | None = None
    facts: Facts | None = None
    reason: str = ""


Embedded: TypeAlias = tuple[Result, Array]
"""With a row for each text of its reading (`texts_of`)."""


def read(tasks: Sequence[Task]) -> list[Result]:
    return [_result(task) for task in tasks]


def read_apart(tasks: Sequence[Task], processes: Confined) -> list[Result]:
    """Read in a process with bounds. Of tasks that break the bounds together each is read again, so that the one that
    does so alone has failed and no other."""
    try:
        return processes.run(read, tasks)
    except Exceeded as error:
        if len(tasks) == 1:
            return [Result(origin=tasks[0].item.origin, state="failed", reason=str(error))]
        return [result for task in tasks for result in read_apart([task], processes)]


def _result(task: Task) -> Result:
    item = masked(task.item)
    if digest_of(item) == task.digest:
        facts = facts_of(item) if task.drafted else None
        return Result(origin=item.origin, state="unchanged", facts=facts)
    reading = read_item(task.source, item, drafted=task.drafted)
    if reading is None:
        return Result(origin=item.origin, state="failed", reason="nothing but boilerplate")
    state: Literal["added", "changed"] = "added" if task.digest is None else "changed"
    return Result(origin=item.origin, state=state, reading=reading, facts=reading.facts)


def embedded(results: Sequence[Result], embed: Embed) -> list[Embedded]:
    """The results with their vectors."""
    texts = [texts_of(result.reading) if result.reading else () for result in results]
    together = list(chain.from_iterable(texts))
    batches = [embed(together[start : start + BATCH]) for start in range(0, len(together), BATCH)]
    vectors = np.concatenate(batches) if batches else np.zeros((0, 0), np.float32)
    ends = list(accumulate(map(len, texts)))
    return [(result, vectors[end - len(own) : end]) for result, own, end in zip(results, texts, ends, strict=True)]


def texts_of(reading: Reading) -> tuple[str, ...]:
    """The passages, and of a resolved thread what was seen with what resolved it."""
    thread = reading.thread
    if not thread.resolution:
        return reading.passages
    return (*reading.passages, "\n".join((thread.title, *(quote.text for quote in thread.resolution))))
