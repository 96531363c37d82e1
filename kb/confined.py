"""Work on foreign bytes in processes with bounds: a hostile file costs its own item, never the run.

A thread cannot be stopped, and a parser in C does not let other threads run. A process can be killed.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from pebble import ProcessExpired, ProcessFuture, ProcessPool

P = ParamSpec("P")
T = TypeVar("T")

MEMORY = 2 * 1024**3
"""Bytes of address space of one process; the parsers of documents take a quarter of it before they read anything."""


class Exceeded(Exception):
    """The work broke a bound, and its process was killed; ``args[0]`` says which."""


class Confined:
    """Processes that work for at most ``timeout_s`` on each task. They start with the first task."""

    def __init__(self, timeout_s: float, memory: int = MEMORY, processes: int = 1) -> None:
        self._timeout_s = timeout_s
        self._memory = memory
        self._processes = processes
        self._pool: ProcessPool | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Confined:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What ``work`` returns or raises. Raises `Exceeded`."""
        return self.begin(work, *args, **kwargs)()

    def begin(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Callable[[], T]:
        """Begin to work; what is returned waits for the result, as `run` does."""
        future = self._scheduled(work, args, kwargs)

        def result() -> T:
            try:
                done: T = future.result()
            except TimeoutError as error:
                raise Exceeded(f"takes longer than {self._timeout_s:g} s to read") from error
            except (MemoryError, ProcessExpired) as error:
                raise Exceeded(f"takes more than {self._memory // 1024**2} MiB of memory to read") from error
            return done

        return result

    def close(self) -> None:
        """End all processes. The next task starts others."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.stop()  # type: ignore[no-untyped-call]
            pool.join()

    def _scheduled(self, work: Callable[P, T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> ProcessFuture[T]:
        with self._lock:
            if self._pool is None or not self._pool.active:  # a broken pool stays broken
                self._pool = self._started()
            future: ProcessFuture[T] = self._pool.schedule(work, args=args, kwargs=kwargs, timeout=self._timeout_s)
            return future

    def _started(self) -> ProcessPool:
        # Not fork: a lock that another thread holds would stay locked in the child.
        methods = multiprocessing.get_all_start_methods()
        context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
        return ProcessPool(self._processes, initializer=_bounded, initargs=(self._memory,), context=context)


def _bounded(memory: int) -> None:
    """Bound the address space of this process, where the system can, and end it with its parent."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    # A killed parent closes nothing, and a process that waits for its next task would do so for ever.
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_exit_after, args=(parent,), daemon=True).start()


def _exit_after(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)
