"""The stages of a bulk run, the same under every executor: an item is read to a thread with passages, these are
embedded. Everything here can be sent to another process."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

import trainmedic.kb.picklable  # noqa: F401  threads hold read-only mappings
from trainmedic.ingest.document import Checkpoint, Discussion, Raw, masked
from trainmedic.ingest.threads import Reading, digest_of, thread_of

BATCH = 48
"""Texts that are embedded in one call; from 64 the default encoder would use threads of its own."""
Array = npt.NDArray[np.float32]
Embed = Callable[[Sequence[str]], Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """An item of a source; ``digest`` is that of the stored thread, None if there is none."""

    source: str
    item: Raw | Discussion
    digest: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What an item became. Only a new or changed one has a ``reading``, and once it is embedded a row of ``vectors``
    for each of its texts (`texts_of`)."""

    origin: str
    state: Literal["added", "changed", "unchanged", "empty"]
    reading: Reading | None
    vectors: Array = field(default_factory=lambda: np.zeros((0, 0), np.float32))


class Executor(Protocol):
    def run(self, tasks: Iterable[Task | Checkpoint]) -> Generator[Result | Checkpoint, None, None]:
        """The results in the order of the tasks, with vectors.

        A bounded number of tasks is taken ahead of the results, none beyond a checkpoint before that was returned.
        """
        ...


def read(tasks: Sequence[Task]) -> list[Result]:
    return [_result(task) for task in tasks]


def _result(task: Task) -> Result:
    item = masked(task.item)
    if digest_of(item) == task.digest:
        return Result(origin=item.origin, state="unchanged", reading=None)
    reading = thread_of(task.source, item)
    if reading is None:
        return Result(origin=item.origin, state="empty", reading=None)
    return Result(origin=item.origin, state="added" if task.digest is None else "changed", reading=reading)


def embedded(results: Sequence[Result], embed: Embed) -> list[Result]:
    """The results with their vectors."""
    texts = [text for result in results if result.reading for text in texts_of(result.reading)]
    if not texts:
        return list(results)
    vectors = np.concatenate([embed(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)])
    complete: list[Result] = []
    start = 0
    for result in results:
        if result.reading:
            end = start + len(texts_of(result.reading))
            result = replace(result, vectors=vectors[start:end])
            start = end
        complete.append(result)
    return complete


def texts_of(reading: Reading) -> tuple[str, ...]:
    """The passages, and of a resolved thread what was seen with what resolved it."""
    thread, passages = reading
    if not thread.resolution:
        return passages
    return (*passages, "\n".join((thread.title, *(quote.text for quote in thread.resolution))))
