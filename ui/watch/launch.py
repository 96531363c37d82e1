"""Runs a command, passes its output through byte for byte, and reads it along the way."""

from __future__ import annotations

import codecs
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import IO, Any

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PIECE = 1 << 16
MAX_CONFIG = 1 << 20
"""The largest file, in bytes, that counts as a configuration."""
CONFIGS = frozenset({".sh", ".bash", ".yaml", ".yml", ".json", ".toml", ".ini", ".py", ".slurm", ".sbatch"})


def run(command: Sequence[str], on_text: Callable[[str], None]) -> int:
    """The command's exit code, 128 + n if signal n ended it. ``on_text`` gets its output piece by piece.

    Interrupts go to the command. Raises `OSError` if it cannot be started.
    """
    # Pipes and not a terminal: a program may buffer its output or drop colours, as in any CI job.
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process, _forwarded(process):
        assert process.stdout is not None
        assert process.stderr is not None
        readers = [
            Thread(target=_pass_through, args=(process.stdout, sys.stdout, on_text), daemon=True),
            Thread(target=_pass_through, args=(process.stderr, sys.stderr, on_text), daemon=True),
        ]
        for reader in readers:
            reader.start()
        code = process.wait()
        for reader in readers:
            # A grandchild may hold the pipe open for ever; the command itself has ended.
            reader.join(timeout=5.0)
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


def _pass_through(stream: IO[bytes], target: Any, on_text: Callable[[str], None]) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    sink = getattr(target, "buffer", None)
    # Not a buffered read, which would hold output back until its buffer is full.
    while piece := os.read(stream.fileno(), PIECE):
        if sink is not None:
            with suppress(OSError, ValueError):  # the reader of our output is gone; the run continues
                sink.write(piece)
                sink.flush()
        on_text(decoder.decode(piece))


@contextmanager
def _forwarded(process: subprocess.Popen[bytes]) -> Any:
    def forward(number: int, _: FrameType | None) -> None:
        with suppress(ProcessLookupError):
            process.send_signal(number)

    with ExitStack() as stack:
        for number in FORWARDED:
            with suppress(ValueError):  # only the main thread may handle signals
                stack.callback(signal.signal, number, signal.signal(number, forward))
        yield
