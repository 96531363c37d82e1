"""The stages by Ray Data: on the cores of this machine or, with ``RAY_ADDRESS``, of a cluster. Needs the extra
``bulk``.

Ray starts processes of its own and copies what goes between them; one machine has no need of it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import trainmedic.kb.picklable  # noqa: F401  threads hold read-only mappings
from trainmedic.ingest.items import Checkpoint
from trainmedic.ingest.threads.local import CHUNK, DEADLINE_S
from trainmedic.ingest.threads.stages import Embed, Embedded, Task, embedded, read_apart
from trainmedic.kb.confined import Confined
from trainmedic.kb.errors import InvalidSettings

WINDOW = 2_048
"""Items that are given to Ray at once: what is held in memory, and what a killed run has to do again."""
Row = dict[str, Any]
"""Column → its value."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One value to Ray, which would take a list of tasks or results for a column of its own."""

    values: Sequence[Any]


class RayData:
    """An executor. ``make`` opens the encoder, once in each process that embeds: ``encoders`` of them on this machine,
    as many as there are cores on a cluster."""

    def __init__(self, make: Callable[[], Embed], encoders: int | None = None, window: int = WINDOW) -> None:
        # Ray reports its use unless this is set before it starts; nothing may leave the machine.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            import ray.data
        except ImportError as error:
            raise InvalidSettings("Ray Data is not installed", hint="pip install 'trainmedic[bulk]'") from error
        # By value: two processes that unpack the same bytes open the same encoder.
        self._made: bytes = ray.cloudpickle.dumps(make)
        self._window = window
        if not ray.is_initialized():
            # A cluster knows by itself how many cores it has.
            here: dict[str, Any] = {"num_cpus": encoders or max(2, os.cpu_count() or 1), "include_dashboard": False}
            ray.init(
                log_to_driver=False, logging_level=logging.ERROR, **({} if os.environ.get("RAY_ADDRESS") else here)
            )
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        context = ray.data.DataContext.get_current()
        context.execution_options.preserve_order = True
        context.enable_progress_bars = False

    def run(self, tasks: Iterable[Task | Checkpoint]) -> Generator[Embedded | Checkpoint, None, None]:
        window: list[Task] = []
        for task in tasks:
            if isinstance(task, Task):
                window.append(task)
            if len(window) == self._window or isinstance(task, Checkpoint):
                yield from self._results(window)
                window = []
            if isinstance(task, Checkpoint):
                yield task
        yield from self._results(window)

    def close(self) -> None:
        """Leave the cluster, or end Ray's processes on this machine. An interpreter that exits does so by itself."""
        import ray

        ray.shutdown()

    def _results(self, tasks: Sequence[Task]) -> Iterator[Embedded]:
        if not tasks:
            return
        import ray.data

        chunks = [tasks[start : start + CHUNK] for start in range(0, len(tasks), CHUNK)]
        data = ray.data.from_items([{"chunk": Chunk(chunk)} for chunk in chunks], override_num_blocks=len(chunks))
        for row in data.map(_done, fn_args=(self._made,), num_cpus=1).iter_rows():
            yield from row["chunk"].values


def _done(row: Row, made: bytes) -> Row:
    """A chunk, read and embedded. A task and no actor: Ray would start new actors, and they open the encoder again, for
    every window."""
    return {"chunk": Chunk(embedded(read_apart(row["chunk"].values, _readers()), _encoder(made)))}


@cache
def _readers() -> Confined:
    return Confined(DEADLINE_S)


@cache
def _encoder(made: bytes) -> Embed:
    import ray

    embed: Embed = ray.cloudpickle.loads(made)()
    return embed
