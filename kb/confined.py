"""Work on foreign bytes in processes with bounds: a hostile file costs its own item, never the run.

A thread cannot be stopped, and a parser in C does not let other threads run. A process can be killed. Nor is it
trusted: what it sends is read as data of the type that the work is annotated to return (`kb.codec`), at most
`MOST_SENT` bytes of it, or as one of the few errors listed here. Each process has a connection of its own, so that
none sees what another was given.
"""

from __future__ import annotations

import logging
import multiprocessing
import pickle
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from multiprocessing.process import BaseProcess
from typing import Any, ParamSpec, TypeVar, get_type_hints

from trainmedic.kb.codec import Codec, Malformed, codec_of
from trainmedic.kb.trace import trace_of

P = ParamSpec("P")
T = TypeVar("T")

MEMORY = 2 * 1024**3
"""Bytes of address space of one process; the parsers of documents take a quarter of it before they read anything."""
MOST_SENT = 64 * 1024**2
"""Bytes that a process may send back: what the largest texts within the service's limits come to, several times."""
MOST_SAID = 8_192
"""Bytes of an error that are kept."""
STARTING_S = 120.0
"""Seconds in which a process must have loaded what it works with."""
START_METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
"""Not fork: a lock that another thread holds would stay locked in the child."""
_HEAD = 9
"""Bytes before a message: its kind and its length."""
_BEGUN, _DONE, _VALUE, _MODULE, _MEMORY, _FAILED = b"BDVNMF"
_REPLIES = b"DVNMF"
_LOG = logging.getLogger(__name__)


class Exceeded(Exception):
    """The work broke a bound, and its process was killed; ``args[0]`` says which."""


class TookTooLong(Exceeded):
    """The bound was that of time."""


class WorkFailed(Exception):
    """The work raised what it does not say it raises (the log has where), or was not done when all was closed."""


class Confined:
    """Processes that work for at most ``timeout_s`` on each task. They start with the first task."""

    def __init__(self, timeout_s: float, memory: int = MEMORY, processes: int = 1) -> None:
        self._timeout_s = timeout_s
        self._memory = memory
        self._slots = threading.Semaphore(processes)
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()

    def __enter__(self) -> Confined:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of ``work``, which must be annotated with frozen dataclasses and plain values.

        Raises `ValueError` and `ModuleNotFoundError` where it does, `Exceeded`, and `WorkFailed` for anything else.
        """
        codec = _codec(work)
        with self._slots:
            worker = self._taken()
            try:
                kind, data = worker.ask(pickle.dumps((work, args, kwargs, self._timeout_s)), self._timeout_s)
                result = codec.decode(data) if kind == _DONE else None
            except (OSError, EOFError, Malformed) as error:
                closed = not self._end(worker)
                raise (WorkFailed("closed before it was done") if closed else self._exceeded(error)) from error
            except BaseException:
                self._end(worker)
                raise
            with self._lock:
                self._idle.append(worker)
        if kind == _DONE:
            return result  # type: ignore[return-value]  # the codec's
        raise self._error(kind, data.decode("utf-8", "replace"))

    def start(self) -> None:
        """Start the processes that are not yet needed; returns when all have begun."""
        started = []
        try:
            while self._slots.acquire(blocking=False):
                started.append(self._taken())
        finally:
            with self._lock:
                self._idle += started
            for _ in started:
                self._slots.release()

    def close(self) -> None:
        """End all processes and what they work on. The next task starts others."""
        with self._lock:
            workers = list(self._all)
        for worker in workers:
            self._end(worker)

    def _taken(self) -> _Worker:
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.alive:
                    return worker
                self._all.remove(worker)
        worker = _Worker(self._memory)
        with self._lock:
            self._all.add(worker)
        return worker

    def _end(self, worker: _Worker) -> bool:
        """False if it has been ended already."""
        with self._lock:
            if worker not in self._all:
                return False
            self._all.remove(worker)
            if worker in self._idle:
                self._idle.remove(worker)
        worker.kill()
        return True

    def _exceeded(self, error: Exception) -> Exception:
        if isinstance(error, TimeoutError):
            return TookTooLong(f"takes longer than {self._timeout_s:g} s to read")
        if isinstance(error, Malformed):
            _LOG.warning("a process sent what is not a result of its work, and was killed: %s", error)
            return Exceeded("what came back is not a result")
        return self._error(_MEMORY, "")

    def _error(self, kind: int, said: str) -> Exception:
        if kind == _VALUE:
            return ValueError(said)
        if kind == _MODULE:
            return ModuleNotFoundError(f"No module named {said!r}", name=said)
        if kind == _MEMORY:
            return Exceeded(f"takes more than {self._memory // 1024**2} MiB of memory to read")
        _LOG.error("work in a process of its own failed:\n%s", said)
        return WorkFailed("work in a process of its own failed")


@cache
def _codec(work: Callable[..., Any]) -> Codec[Any]:
    return codec_of(get_type_hints(work).get("return", object))


class _Worker:
    """One process, and the only connection to it."""

    def __init__(self, memory: int) -> None:
        self._channel, theirs = socket.socketpair()
        self._starting_s = STARTING_S
        context: Any = multiprocessing.get_context(START_METHOD)
        self._process: BaseProcess = context.Process(target=_serve, args=(theirs, memory), daemon=True)
        try:
            self._process.start()
        finally:
            theirs.close()

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    def ask(self, task: bytes, timeout_s: float) -> tuple[int, bytes]:
        """The kind and the content of its reply.

        Raises `TimeoutError`, `Malformed`, and `OSError` or `EOFError` if the process has ended.
        """
        deadline = time.monotonic() + self._starting_s + timeout_s
        _send(self._channel, 0, task, deadline)
        begun, _ = _receive(self._channel, 0, deadline)
        self._starting_s = 0.0
        kind, data = _receive(self._channel, MOST_SENT, time.monotonic() + timeout_s)
        if begun != _BEGUN or kind not in _REPLIES:
            raise Malformed("a message of another kind")
        return kind, data

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
        with suppress(OSError):
            self._channel.shutdown(socket.SHUT_RDWR)  # wakes who waits for it
        self._channel.close()


def _send(channel: socket.socket, kind: int, data: bytes, deadline: float | None = None) -> None:
    channel.settimeout(_left(deadline))
    channel.sendall(bytes((kind,)) + len(data).to_bytes(_HEAD - 1, "big"))
    channel.settimeout(_left(deadline))
    channel.sendall(data)


def _receive(channel: socket.socket, most: int | None, deadline: float | None = None) -> tuple[int, bytes]:
    kind, *length = _exactly(channel, _HEAD, deadline)
    size = int.from_bytes(length, "big")
    if most is not None and size > most:
        raise Malformed(f"more than {most} bytes")
    return kind, _exactly(channel, size, deadline)


def _exactly(channel: socket.socket, size: int, deadline: float | None) -> bytes:
    data = bytearray()
    while len(data) < size:
        channel.settimeout(_left(deadline))
        piece = channel.recv(min(size - len(data), 1 << 20))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)


def _left(deadline: float | None) -> float | None:
    """Raises `TimeoutError` once the deadline has passed."""
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _serve(channel: socket.socket, memory: int) -> None:
    """Work on one task after another, until the other end of the connection is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started this process ends it
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    with suppress(EOFError, OSError):
        while True:
            _, task = _receive(channel, None)
            work, args, kwargs, timeout_s = pickle.loads(task)
            codec = _codec(work)
            _send(channel, _BEGUN, b"")
            _end_after(timeout_s + STARTING_S)
            _send(channel, *_reply(codec, work, args, kwargs))
            _end_after(0)


def _end_after(seconds: float) -> None:
    """Have the system end this process then: a killed parent ends none, and stuck work would go on for ever."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _reply(
    codec: Codec[Any], work: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[int, bytes]:
    try:
        try:
            result = work(*args, **kwargs)
        except ValueError as error:
            return _VALUE, _said(str(error))
        data = codec.encode(result)
    except MemoryError:
        return _MEMORY, b""
    except ModuleNotFoundError as error:
        return _MODULE, _said(error.name or "")
    except Exception as error:
        return _FAILED, _said(trace_of(error))
    return (_DONE, data) if len(data) <= MOST_SENT else (_MEMORY, b"")


def _said(text: str) -> bytes:
    return text.encode("utf-8", "replace")[-MOST_SAID:]
