"""Runs a command as if it had been started without the watcher, and reads its output along the way.

The run is in the watcher's process group and has its standard input. Its output goes through `ui.watch.relay`, a
process of its own, so that the run continues if the watcher is killed.
"""

from __future__ import annotations

import codecs
import os
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from types import FrameType
from typing import IO

from trainmedic.ui.watch import relay

MAX_CONFIG = 1 << 20
"""The largest file, in bytes, that counts as a configuration."""
CONFIGS = frozenset({".sh", ".bash", ".yaml", ".yml", ".json", ".toml", ".ini", ".py", ".slurm", ".sbatch"})
WITNESS_S = 0.5
"""The longest wait for the relay to say that it received a signal too."""
DRAIN_S = 5.0
"""The wait for the last output. A grandchild may hold the pipe open for ever."""


def run(command: Sequence[str], on_text: Callable[[str], None]) -> int:
    """The command's exit code, 128 + n if signal n ended it. ``on_text`` gets its output piece by piece.

    Signals for the watcher alone go on to the command. Raises `OSError` if it cannot be started.
    """
    signals = SignalForwarder()
    with signals.installed(), ExitStack() as stack:
        ours, relays = socket.socketpair()
        stack.callback(ours.close)
        stack.callback(signals.stop)
        output, error, relay_id = _start_relay(relays)
        with output, error:
            # Not a terminal: Python would hold its output back in blocks of 8 KiB.
            environment = {"PYTHONUNBUFFERED": "1", **os.environ}
            process = subprocess.Popen(command, stdout=output, stderr=error, env=environment)
        reader = Thread(target=_read, args=(ours, signals, on_text), daemon=True)
        reader.start()
        signals.forward_to(process)
        code = process.wait()
        reader.join(timeout=DRAIN_S)
        with suppress(ChildProcessError):
            os.waitpid(relay_id, os.WNOHANG)
    return code if code >= 0 else 128 - code


def configs(command: Sequence[str]) -> tuple[str, ...]:
    """The files in a command that look like its configuration."""
    paths = []
    for word in command:
        path = Path(word.partition("=")[2] if word.startswith("-") and "=" in word else word)
        with suppress(OSError, ValueError):
            if path.suffix.lower() in CONFIGS and path.is_file() and path.stat().st_size <= MAX_CONFIG:
                paths.append(str(path))
    return tuple(dict.fromkeys(paths))


def _start_relay(copy: socket.socket) -> tuple[IO[bytes], IO[bytes], int]:
    """The ends that the command writes to, and the relay's process id. ``copy`` is closed here."""
    with ExitStack() as stack:
        stack.enter_context(copy)
        pipes = [os.pipe() for _ in range(2)]
        descriptors = (*(reading for reading, _ in pipes), copy.fileno())
        for reading, _ in pipes:
            stack.callback(os.close, reading)
        for descriptor in descriptors:
            os.set_inheritable(descriptor, True)
        relay_id = os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", relay.__file__, *map(str, descriptors)],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)],
            setsigmask=relay.SIGNALS,  # until its handlers are installed: a signal to the group must not end it
        )
    output, error = (os.fdopen(writing, "wb", buffering=0) for _, writing in pipes)
    return output, error, relay_id


def _read(source: socket.socket, signals: SignalForwarder, on_text: Callable[[str], None]) -> None:
    decoders = {kind: codecs.getincrementaldecoder("utf-8")("replace") for kind in (relay.OUTPUT, relay.ERROR)}
    with source.makefile("rb") as stream:
        while len(header := stream.read(relay.HEADER.size)) == relay.HEADER.size:
            kind, at, length = relay.HEADER.unpack(header)
            content = stream.read(length)
            if kind == relay.SIGNAL:
                for number in content:
                    signals.witnessed.append((number, at))
            else:
                on_text(decoders[kind].decode(content))
    signals.witness_gone = True


class SignalForwarder:
    """Passes signals on to a process, unless its whole process group has received them.

    The terminal, and schedulers that signal every process of a job, reach the run by themselves: a second interrupt
    would make a trainer that stops gently on the first stop hard. The relay is the witness.
    """

    def __init__(self) -> None:
        self.witnessed: deque[tuple[int, float]] = deque(maxlen=256)
        self.witness_gone = False
        self._received: SimpleQueue[tuple[int, float]] = SimpleQueue()

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Receive signals inside. An ignored one (`nohup`, a background job) stays ignored."""
        with ExitStack() as stack:
            for number in relay.SIGNALS:
                if signal.getsignal(number) in (signal.SIG_IGN, None):
                    continue
                with suppress(ValueError):  # only the main thread may handle signals
                    stack.callback(signal.signal, number, signal.signal(number, self._receive))
            yield

    def forward_to(self, process: subprocess.Popen[bytes]) -> None:
        """Pass signals on from now on; those before the process existed first."""
        Thread(target=self._forward, args=(process, time.monotonic()), daemon=True).start()

    def stop(self) -> None:
        """End the thread of `forward_to`."""
        self._received.put((0, 0.0))

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self._received.put((number, time.monotonic()))

    def _forward(self, process: subprocess.Popen[bytes], started: float) -> None:
        while True:
            number, at = self._received.get()
            if not number:
                return
            if at < started or not self._reached_group(number, at):
                with suppress(ProcessLookupError):
                    process.send_signal(number)
            if number == signal.SIGTSTP and os.isatty(0):
                os.kill(os.getpid(), signal.SIGSTOP)  # the shell waits for this process to stop

    def _reached_group(self, number: int, at: float) -> bool:
        while not self.witness_gone:
            for record in tuple(self.witnessed):
                if record[0] == number and abs(record[1] - at) <= WITNESS_S:
                    self.witnessed.remove(record)
                    return True
            if time.monotonic() - at > WITNESS_S:
                break
            time.sleep(0.01)
        return False
