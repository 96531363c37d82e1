"""Bring the stored threads of a source in line with what it has: only what changed is read and embedded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing
from dataclasses import dataclass, replace
from types import MappingProxyType

from trainmedic.ingest.items import Checkpoint, Discussion, Failure, Gone, Item, Raw
from trainmedic.ingest.threads.facts import Facts, Reading, key_of
from trainmedic.ingest.threads.local import Local
from trainmedic.ingest.threads.stages import Array, Task
from trainmedic.kb.threads.store import Entry, ThreadStore

BATCH = 64
"""Threads in one transaction, except for the last before a checkpoint."""
Explain = Callable[[Array], Mapping[str, float]]
"""The mechanisms that the curated knowledge takes the text of a vector for: mechanism → share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncSummary:
    """The counts of one run over the threads of a source."""

    added: int
    changed: int
    unchanged: int
    removed: int
    failures: tuple[Failure, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """The outcome of a run: the facts of items that may become drafts, and the keys of what its source has deleted."""

    summary: SyncSummary
    facts: tuple[Facts, ...]
    deleted: frozenset[str]


def sync(
    source: str,
    items: Iterable[Item],
    store: ThreadStore,
    executor: Local,
    explain: Explain,
    progress: Callable[[int], None] = lambda count: None,
    *,
    complete: bool = True,
    drafted: Callable[[Raw | Discussion], bool] = lambda item: False,
) -> Synced:
    """Bring the store's threads of ``source`` in line with what was read.

    ``complete``: the items are all that there is, so a thread that is not among them is gone. ``progress`` is called
    with the number of items that are done, ``drafted`` says whose facts are wanted. An item that cannot be read never
    ends the run. An error of the encoder does; what was stored until then stays.
    """
    known = store.digests(source)
    failures: list[Failure] = []
    keys: set[str] = set()
    deleted: set[str] = set()
    counts = {"added": 0, "changed": 0, "unchanged": 0}

    def tasks() -> Iterator[Task | Checkpoint]:
        for number, item in enumerate(items, start=1):
            progress(number)
            if isinstance(item, Failure):
                failures.append(item)
            elif isinstance(item, Gone):
                deleted.add(item.key)
            elif isinstance(item, Checkpoint):
                yield item
            elif (key := key_of(item)) not in keys:
                keys.add(key)
                yield Task(source=source, item=item, digest=known.get(key), drafted=drafted(item))

    entries: list[Entry] = []
    facts: list[Facts] = []
    with closing(executor.run(tasks())) as results:
        for done in results:
            if isinstance(done, Checkpoint):
                store.put(entries)
                entries = []
                store.set_checkpoint(source, done.value)
            elif (result := done[0]).state == "failed":
                failures.append(Failure(origin=result.origin, reason=result.reason))
            else:
                counts[result.state] += 1
                facts += [result.facts] if result.facts is not None else []
                if result.reading is not None:
                    entries.append(_entry(result.reading, done[1], explain))
                if len(entries) == BATCH:
                    store.put(entries)
                    entries = []
    store.put(entries)
    missing = _missing(source, known.keys() - keys, failures, store) if complete else set()
    gone = sorted((deleted | missing) & known.keys())
    store.remove([f"{source}:{key}" for key in gone])
    store.optimise()
    summary = SyncSummary(**counts, removed=len(gone), failures=tuple(failures))
    return Synced(summary=summary, facts=tuple(facts), deleted=frozenset(deleted))


def _entry(reading: Reading, vectors: Array, explain: Explain) -> Entry:
    thread, passages = reading.thread, reading.passages
    if thread.resolution:
        thread = replace(thread, mechanisms=MappingProxyType(dict(explain(vectors[-1]))))
    return Entry(thread=thread, passages=passages, vectors=vectors[: len(passages)])


def _missing(source: str, keys: Set[str], failures: Sequence[Failure], store: ThreadStore) -> set[str]:
    """Of the keys that were not among the items, those that are not so because something could not be read."""
    unread = tuple(failure.origin for failure in failures)
    below = tuple(f"{origin}{mark}" for origin in unread for mark in "/#:")
    origins = store.origins(source) if keys and unread else {}
    return {key for key in keys if not (origin := origins.get(key, "")).startswith(below) and origin not in unread}
