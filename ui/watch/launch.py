"""Runs a command, passes its output on, and reads it along the way.

The run has a session of its own: what signals the watcher's process group, as a terminal does, reaches it once, from
here. It keeps the watcher's standard input. It writes to files and not to pipes, so that a watcher which is killed or
stopped neither ends the run nor makes it wait.
"""

from __future__ import annotations

import codecs
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Event, Thread
from types import FrameType

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
"""Signals that reach a run from outside: the terminal, a scheduler, a supervisor."""
OUTPUT = "trainmedic-watch-"
"""How the folder with a run's output begins. It lies where the run was started, and is removed at the end."""
LOOK_S = 0.05
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
        folder = _folder()
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        files = [folder / "stdout", folder / "stderr"]
        with files[0].open("ab") as out, files[1].open("ab") as err:
            process = subprocess.Popen(command, stdout=out, stderr=err, env=environment, start_new_session=True)
        for number in early:
            process.send_signal(number)
        ended = Event()
        readers = [
            Thread(target=_pass_on, args=(file, target, on_text, ended), daemon=True)
            for target, file in enumerate(files, 1)
        ]
        for reader in readers:
            reader.start()
        code = process.wait()
        ended.set()
        for reader in readers:
            reader.join()
    return code if code >= 0 else 128 - code


def _folder() -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix=OUTPUT, dir=Path.cwd()))
    except OSError:  # not writable
        return Path(tempfile.mkdtemp(prefix=OUTPUT))


def _pass_on(source: Path, target: int, on_text: Callable[[str], None], ended: Event) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    heard, last = True, False
    with source.open("rb") as stream:
        while not last:
            last = ended.wait(LOOK_S)
            end = os.fstat(stream.fileno()).st_size  # what the run leaves behind may go on writing
            while stream.tell() < end and (piece := stream.read(PIECE)):
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
