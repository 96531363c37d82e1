"""Runs a command, passes its output on, and reads it along the way.

The run has a session of its own: what signals the watcher's process group, as a terminal does, reaches it once, from
here. It keeps the watcher's standard input.
"""

from __future__ import annotations

import codecs
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import IO

MAX_CONFIG = 1 << 20
"""The largest file, in bytes, that counts as a configuration."""
CONFIGS = frozenset({".sh", ".bash", ".yaml", ".yml", ".json", ".toml", ".ini", ".py", ".slurm", ".sbatch"})
SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
"""What reaches a run from outside: the terminal, a scheduler, a supervisor."""
DRAIN_S = 5.0
"""The wait for the last output. A grandchild may hold the pipe open for ever."""
PIECE = 1 << 16


def run(command: Sequence[str], on_text: Callable[[str], None]) -> int:
    """The command's exit code, 128 + n if signal n ended it. ``on_text`` gets its output piece by piece.

    Raises `OSError` if it cannot be started.
    """
    process: subprocess.Popen[bytes] | None = None
    early: list[int] = []

    def forward(number: int, frame: FrameType | None) -> None:
        early.append(number) if process is None else process.send_signal(number)

    with ExitStack() as stack:
        for number in (getattr(signal, name) for name in SIGNALS if hasattr(signal, name)):
            # An ignored one (`nohup`, a background job) stays ignored. Only the main thread may handle signals.
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                with suppress(ValueError):
                    stack.callback(signal.signal, number, signal.signal(number, forward))
        # Not a terminal: Python would hold its output back in blocks of 8 KiB.
        environment = {"PYTHONUNBUFFERED": "1", **os.environ}
        process = subprocess.Popen(
            command,
            bufsize=0,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
        for number in early:
            process.send_signal(number)
        readers = [
            Thread(target=_pass_on, args=(source, target, on_text), daemon=True)
            for source, target in ((process.stdout, 1), (process.stderr, 2))
        ]
        for reader in readers:
            reader.start()
        code = process.wait()
        for reader in readers:
            reader.join(timeout=DRAIN_S)
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


def _pass_on(source: IO[bytes], target: int, on_text: Callable[[str], None]) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    heard = True
    with source:
        while piece := source.read(PIECE):
            heard = heard and _written(target, piece)  # if the reader of our output is gone, the run continues
            on_text(decoder.decode(piece))


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
