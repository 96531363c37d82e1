"""Passes the output of a run through, in a process of its own that outlives the watcher.

    python relay.py STDOUT STDERR COPY

reads the pipes STDOUT and STDERR of the run and writes their bytes to its own standard output and error. To the socket
COPY it writes frames of what it passed on and of the signals that the process group received. A watcher that is dead,
stopped or slow loses its copy; the run never waits for it.

Standard library only: it runs with ``-I -S``, without the package.
"""

from __future__ import annotations

import os
import selectors
import signal
import struct
import sys
import time
from collections import deque
from contextlib import suppress

HEADER = struct.Struct("!cdI")
"""Kind, `time.monotonic` at which it was read, and the length of what follows. The clock is the machine's."""
OUTPUT, ERROR, SIGNAL = b"o", b"e", b"s"
SIGNALS = tuple(
    number
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCONT", "SIGTSTP")
    if (number := getattr(signal, name, None)) is not None
)
"""What reaches a run from outside: the terminal, a scheduler, a supervisor."""
PIECE = 1 << 16
MAX_BEHIND = 16 << 20
"""Bytes kept for a watcher that does not read; beyond this the oldest frames are dropped."""


class Copy:
    """The watcher's copy: frames in a bounded queue before a socket that is never waited for."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor: int | None = descriptor
        self._queue: deque[bytes] = deque()
        self._size = 0
        self._begun = b""

    @property
    def behind(self) -> int | None:
        """The socket's descriptor while something waits to be written, else None."""
        return self._descriptor if self._begun or self._queue else None

    def add(self, kind: bytes, content: bytes) -> None:
        if self._descriptor is None:
            return
        frame = HEADER.pack(kind, time.monotonic(), len(content)) + content
        self._queue.append(frame)
        self._size += len(frame)
        while self._size > MAX_BEHIND and len(self._queue) > 1:
            self._size -= len(self._queue.popleft())
        self.flush()

    def flush(self) -> None:
        """Write what the socket takes at once."""
        while self._descriptor is not None and (self._begun or self._queue):
            if not self._begun:
                self._begun = self._queue.popleft()
                self._size -= len(self._begun)
            try:
                written = os.write(self._descriptor, self._begun)
            except BlockingIOError:
                return
            except OSError:  # the watcher is dead
                self._descriptor = None
                return
            self._begun = self._begun[written:]


def relay(pipes: dict[int, tuple[bytes, int]], copy: Copy, wakeup: int) -> None:
    """Pass bytes on until every pipe is at its end. ``pipes``: descriptor to kind and the descriptor to write to."""
    deaf: set[int] = set()
    with selectors.DefaultSelector() as selector:
        for descriptor in (*pipes, wakeup):
            selector.register(descriptor, selectors.EVENT_READ)
        while pipes:
            # Only while frames wait, since a socket is nearly always writable.
            waiting = copy.behind
            if waiting is not None:
                selector.register(waiting, selectors.EVENT_WRITE)
            ready = [key.fd for key, _ in selector.select()]
            if waiting is not None:
                selector.unregister(waiting)
                copy.flush()
            for descriptor in ready:
                if descriptor == wakeup:
                    copy.add(SIGNAL, os.read(wakeup, PIECE))
                elif descriptor in pipes:
                    kind, target = pipes[descriptor]
                    piece = os.read(descriptor, PIECE)
                    if not piece:
                        selector.unregister(descriptor)
                        del pipes[descriptor]
                        continue
                    if target not in deaf and not _written(target, piece):
                        deaf.add(target)  # the reader of our output is gone; the run continues
                    copy.add(kind, piece)


def _written(target: int, piece: bytes) -> bool:
    view = memoryview(piece)
    while view:
        try:
            view = view[os.write(target, view) :]
        except BlockingIOError:
            # A terminal that some program left non-blocking.
            time.sleep(0.01)
        except OSError:
            return False
    return True


def main(output: int, error: int, copy_to: int) -> None:
    # Handlers and not SIG_IGN: the watcher learns what the whole group received.
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in SIGNALS:
        with suppress(OSError, ValueError):
            signal.signal(number, lambda number, frame: None)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    # The launcher blocked them until here.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    copy = Copy(copy_to)
    relay({output: (OUTPUT, 1), error: (ERROR, 2)}, copy, reading)
    # The last frames, for as long as the watcher takes them.
    os.set_blocking(copy_to, True)
    copy.flush()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
