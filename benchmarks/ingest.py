"""Ingesting many write-ups: what the encoder's throughput loses, memory by size, and runs that are killed.

    python -m benchmarks.ingest [--count 3000] [--rounds 3] [--beside]
    python -m benchmarks.ingest --cheap --count 10000 40000
    python -m benchmarks.ingest --cheap --count 100000 --kills 10

The write-ups (`benchmarks.write_ups`) are made before the clock starts. Each round ingests them in a process of its own
into a fresh store, what the knowledge takes a resolution for included, and then embeds the very same passages with as
many encoder threads and nothing else to do. Exit code 1 if a run embeds less than 85 % of that, by processor time: what
else runs on the machine changes that less than the time by the clock, which is printed too. ``--beside``: the encoder
alone embeds while the run does, so that both meet the same machine; then only processor time says anything.

``--cheap`` replaces the encoder by a hash, so that the rest is what is measured, and makes the write-ups while they are
read, so that memory is that of the run. ``--kills``: a run is killed when as
many random numbers of threads are stored, started again each time, and its store compared with that of a run that was
left alone: the same threads, words and vectors, none missing and none twice.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import zip_longest
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Event
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from benchmarks.embedding import DIMENSION, cheap, encoder
from benchmarks.table import Row, Table
from benchmarks.write_ups import write_ups
from trainmedic.ingest.items import Discussion, Raw
from trainmedic.ingest.threads.facts import key_of
from trainmedic.ingest.threads.local import Local
from trainmedic.ingest.threads.stages import BATCH, Task, read, texts_of
from trainmedic.ingest.threads.sync import Explain, sync
from trainmedic.kb.threads import vectors
from trainmedic.kb.threads.store import FILE, ThreadStore
from trainmedic.service.ranking.similar import mechanisms_near
from trainmedic.service.settings import Settings
from trainmedic.ui.loading import load_knowledge

RATIO_BUDGET = 0.85
LOST = "lost in the run, by processor time"
ENCODERS = 2
SPAWN = multiprocessing.get_context("spawn")
POLL_S = 0.05
LONGEST_DELAY_S = 0.5
"""Of a kill after the number of threads is stored, so that it comes anywhere in a transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One run, in a form that can be sent to its process."""

    folder: Path
    count: int
    seed: int
    cheap: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Threads in the store afterwards; seconds by the clock and of processor time, and the most memory that was in use,
    both of all processes together: until the last item was read, and afterwards, when the index of a large store is
    trained."""

    stored: int
    clock_s: float
    processor_s: float
    memory_mb: float
    memory_after_mb: float


def executor_of(plan: Plan) -> Local:
    return Local(cheap() if plan.cheap else encoder(), encoders=ENCODERS)


def _explain(plan: Plan) -> Explain:
    if plan.cheap:
        return lambda vector: {}
    knowledge = load_knowledge(Settings())
    return lambda vector: mechanisms_near(vector, knowledge)


def ingest(plan: Plan, times: SimpleQueue[tuple[float, float]] | None = None, last: Event | None = None) -> None:
    """One run; ``times`` receives the seconds by the clock and of processor time, ``last`` is set when the last item is
    read."""
    executor, explain = executor_of(plan), _explain(plan)
    store = ThreadStore(plan.folder, "cheap" if plan.cheap else "encoder", DIMENSION)

    made: Iterable[Raw | Discussion] = write_ups(plan.count, plan.seed)
    if not plan.cheap:
        made = list(made)

    def items() -> Iterator[Raw | Discussion]:
        yield from made
        if last is not None:
            last.set()

    started, before = time.perf_counter(), processor_s()
    sync("bench", items(), store, executor, explain)
    if times is not None:
        times.put((time.perf_counter() - started, processor_s() - before))


def processor_s() -> float:
    """Of this process and its children, also of those that have ended."""
    here = psutil.Process()
    return sum(sum(process.cpu_times()[:4]) for process in (here, *here.children(recursive=True)))


def measured(plan: Plan) -> Outcome:
    times: SimpleQueue[tuple[float, float]] = SPAWN.SimpleQueue()
    last = SPAWN.Event()
    process = SPAWN.Process(target=ingest, args=(plan, times, last))
    process.start()
    most = {False: 0, True: 0}
    while process.is_alive():
        after = last.is_set()
        most[after] = max(most[after], _memory(process.pid))
        process.join(POLL_S * 4)
    if process.exitcode:
        raise SystemExit(f"the run ended with exit code {process.exitcode}")
    clock_s, spent_s = times.get()
    store = ThreadStore(plan.folder, "cheap" if plan.cheap else "encoder", DIMENSION)
    return Outcome(
        stored=store.count(),
        clock_s=clock_s,
        processor_s=spent_s,
        memory_mb=most[False] / 1e6,
        memory_after_mb=most[True] / 1e6,
    )


def _memory(pid: int | None) -> int:
    """Bytes that a process and its children hold; shared ones count for each."""
    total = 0
    try:
        process = psutil.Process(pid)
        for one in (process, *process.children(recursive=True)):
            total += one.memory_info().rss
    except psutil.NoSuchProcess:
        pass
    return total


def passages(plan: Plan) -> list[str]:
    """Every text that a run embeds."""
    items = {key_of(item): item for item in write_ups(plan.count, plan.seed)}
    results = read([Task(source="bench", item=item, digest=None) for item in items.values()])
    return [text for result in results if result.reading for text in texts_of(result.reading)]


def alone(texts: Sequence[str]) -> tuple[float, float]:
    """Seconds by the clock and of processor time that the encoder takes for the texts with nothing else to do."""
    embed = encoder()
    batches = [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]
    started, before = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(ENCODERS) as pool:
        list(pool.map(embed, batches))
    return time.perf_counter() - started, time.process_time() - before


def _beside(plan: Plan, times: SimpleQueue[float]) -> None:
    """Puts 0 when it begins, and the processor time that the encoder alone took in the end."""
    texts = passages(plan)
    encoder()
    times.put(0.0)
    times.put(alone(texts)[1])


def beside(plan: Plan) -> tuple[Outcome, float]:
    """A run, and the processor time that the encoder takes for its passages at the same time."""
    times: SimpleQueue[float] = SPAWN.SimpleQueue()
    process = SPAWN.Process(target=_beside, args=(plan, times))
    process.start()
    times.get()
    outcome = measured(plan)
    spent_s = times.get()
    process.join()
    return outcome, spent_s


def throughput_beside(count: int, rounds: int) -> Table:
    table = Table(f"ingest: {count} write-ups, the encoder alone beside the run")
    spent, lost = [], []
    for number in range(rounds):
        with TemporaryDirectory() as folder:
            outcome, spent_s = beside(Plan(folder=Path(folder), count=count, seed=number + 1, cheap=False))
        spent.append(outcome.processor_s)
        lost.append(1 - spent_s / outcome.processor_s)
    table.add("processor time of the run", spent, "s")
    table.rows.append(Row(what=LOST, values=lost, unit="", budget=round(1 - RATIO_BUDGET, 2)))
    return table


def throughput(count: int, rounds: int) -> Table:
    table = Table(f"ingest: {count} write-ups, {ENCODERS} encoder threads")
    stored, by_clock, by_processor, raw, memory = [], [], [], [], []
    for number in range(rounds):
        with TemporaryDirectory() as folder:
            plan = Plan(folder=Path(folder), count=count, seed=number + 1, cheap=False)
            outcome = measured(plan)
        texts = passages(plan)
        clock_s, spent_s = alone(texts)
        stored.append(outcome.stored / outcome.clock_s)
        raw.append(len(texts) / clock_s)
        by_clock.append(clock_s / outcome.clock_s)
        by_processor.append(spent_s / outcome.processor_s)
        memory.append(outcome.memory_mb)
    table.add("stored", stored, "threads/s")
    table.add("the encoder alone", raw, "passages/s")
    table.add("encoder's throughput in the run, by the clock", by_clock, "of that alone")
    lost = [1 - share for share in by_processor]
    table.rows.append(Row(what=LOST, values=lost, unit="", budget=round(1 - RATIO_BUDGET, 2)))
    table.add("peak memory of all processes", memory, "MB")
    return table


def sizes(counts: Sequence[int], seed: int) -> Table:
    table = Table("ingest with a hash for an encoder: memory by size")
    for count in counts:
        with TemporaryDirectory() as folder:
            outcome = measured(Plan(folder=Path(folder), count=count, seed=seed, cheap=True))
        table.add(f"{count} write-ups, stored", [outcome.stored], "threads")
        table.add(f"{count} write-ups, time", [outcome.clock_s], "s")
        table.add(f"{count} write-ups, processor time", [outcome.processor_s], "s")
        table.add(f"{count} write-ups, peak memory of all processes", [outcome.memory_mb], "MB")
        table.add(f"{count} write-ups, the same after the last was read", [outcome.memory_after_mb], "MB")
    return table


def killed(plan: Plan, kills: int) -> Table:
    """A run that is killed, compared with one that is not."""
    source = random.Random(plan.seed)
    with TemporaryDirectory() as whole, TemporaryDirectory() as folder:
        outcome = measured(replace(plan, folder=Path(whole)))
        plan = replace(plan, folder=Path(folder))
        stored = []
        for most in sorted(source.sample(range(outcome.stored), kills)):
            process = SPAWN.Process(target=ingest, args=(plan,))
            process.start()
            while process.is_alive() and _stored(plan.folder) < most:
                process.join(POLL_S)
            process.join(source.uniform(0, LONGEST_DELAY_S))
            process.kill()
            process.join()
            stored.append(_stored(plan.folder))
        last = measured(plan)
        different = differences(Path(whole), plan.folder)
    table = Table(f"ingest: {plan.count} write-ups, killed {kills} times")
    table.add("stored when killed", stored, "threads")
    table.add("stored by the run that was left alone", [outcome.stored], "threads")
    table.add("its time", [outcome.clock_s], "s")
    table.add("its processor time", [outcome.processor_s], "s")
    table.add("its peak memory of all processes", [outcome.memory_mb], "MB")
    table.add("the same after the last was read", [outcome.memory_after_mb], "MB")
    table.add("stored by the last run", [last.stored], "threads")
    table.add("peak memory of the last run", [last.memory_mb], "MB")
    table.rows.append(Row(what="rows that differ", values=[different], unit="", budget=0))
    return table


def _stored(folder: Path) -> int:
    """Threads in a store that another process writes; 0 if it has not begun."""
    try:
        with closing(sqlite3.connect(f"file:{folder / FILE}?mode=ro", uri=True, timeout=30)) as connection:
            return int(connection.execute("select count(*) from threads").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


def differences(first: Path, second: Path) -> int:
    """Rows of two stores that are not the same: threads, the words of their passages, the vectors."""
    words = "select id, terms from passages join threads on threads.number = passages.thread order by id, terms"
    queries = (
        (FILE, "select id, data from threads order by id"),
        (FILE, words),
        (FILE, "select count(*) from words"),
        (vectors.FILE, "select id, vector from vectors order by id"),
    )
    return sum(
        mine != theirs
        for name, query in queries
        for mine, theirs in zip_longest(_rows(first / name, query), _rows(second / name, query))
    )


def _rows(path: Path, query: str) -> Iterator[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        yield from connection.execute(query)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ingest", description=__doc__)
    parser.add_argument("--count", type=int, nargs="+", default=[3_000])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--beside", action="store_true")
    parser.add_argument("--cheap", action="store_true")
    parser.add_argument("--kills", type=int, default=0)
    options = parser.parse_args(argv)
    count = options.count[0]
    if options.kills:
        plan = Plan(folder=Path(), count=count, seed=options.seed, cheap=options.cheap)
        return killed(plan, options.kills).print()
    if options.cheap:
        return sizes(options.count, options.seed).print()
    if options.beside:
        return throughput_beside(count, options.rounds).print()
    return throughput(count, options.rounds).print()


if __name__ == "__main__":
    sys.exit(main())
