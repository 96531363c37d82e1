"""The stages of a bulk run, the same under every executor: an item is read to a thread with passages, these are
embedded. Everything here can be sent to another process."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

import trainmedic.kb.picklable  # noqa: F401  threads hold read-only mappings
from trainmedic.ingest.items import Checkpoint, Discussion, Raw, masked
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
    """What an item became. Only a new or changed one has a ``reading``, and once it is embedded a row of ``vectors``
    for each of its texts (`texts_of`). ``reason`` says why it has ``failed``."""

    origin: str
    state: Literal["added", "changed", "unchanged", "failed"]
    reading: Reading | None = None
    facts: Facts | None = None
    reason: str = ""
    vectors: Array = field(default_factory=lambda: np.zeros((0, 0), np.float32))


class Executor(Protocol):
    def run(self, tasks: Iterable[Task | Checkpoint]) -> Generator[Result | Checkpoint, None, None]:
        """The results in the order of the tasks, with vectors.

        A bounded number of tasks is taken ahead of the results, none beyond a checkpoint before that was returned.
        """
        ...


def read(tasks: Sequence[Task]) -> list[Result]:
    return [_result(task) for task in tasks]


def begin_apart(tasks: Sequence[Task], processes: Confined) -> Callable[[], list[Result]]:
    """Begin to read in a process with bounds; what is returned waits for the results. Of tasks that break the bounds
    together each is read again, so that the one that does so alone has failed and no other."""
    waited = processes.begin(read, tasks)

    def results() -> list[Result]:
        try:
            return waited()
        except Exceeded as error:
            if len(tasks) == 1:
                return [Result(origin=tasks[0].item.origin, state="failed", reason=str(error))]
            return [result for task in tasks for result in begin_apart([task], processes)()]

    return results


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
    thread = reading.thread
    if not thread.resolution:
        return reading.passages
    return (*reading.passages, "\n".join((thread.title, *(quote.text for quote in thread.resolution))))
