"""``trainmedic serve`` as a process that can be killed, and a wire that can be cut."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

PATIENCE_S = 120.0


class Service:
    """One process of the service. What it prints is in ``folder``."""

    def __init__(self, data: Path, folder: Path, settings: Mapping[str, str]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.data = data
        own = {"data_dir": str(data), "pages": "false", "reload_s": "0.2", **settings}
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TRAINMEDIC_")}
        for name, value in own.items():
            environment[f"TRAINMEDIC_{name.upper()}" if name.islower() else name] = value
        command = [sys.executable, "-m", "trainmedic", "serve", "--port", str(self.port)]
        self._log = (folder / f"service-{self.port}.log").open("w")
        # A group of its own: its readers end with it.
        self.process = subprocess.Popen(command, env=environment, stderr=self._log, start_new_session=True)
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=PATIENCE_S)

    def wait(self) -> None:
        """Until it is ready."""
        until(self._ready)

    def _ready(self) -> bool:
        assert self.process.poll() is None, f"the service ended with {self.process.returncode}"
        with suppress(httpx.TransportError):
            return self.client.get("/readyz").status_code == 200
        return False

    def ask(self, question: str = "loss is nan from the first step", **more: Any) -> httpx.Response:
        return self.client.post("/v1/ask", json={"question": question, **more})

    def has_ended(self) -> bool:
        """Whether neither the process nor one of its readers is left."""
        try:
            os.killpg(self.process.pid, 0)
        except ProcessLookupError:
            return True
        return False

    def kill(self) -> None:
        """kill −9, with all its readers."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE_S)
        self.client.close()
        self._log.close()

    def memory_mb(self) -> float:
        """Resident megabytes of the process and its readers, shared pages once (PSS)."""
        pids, total = [self.process.pid], 0
        while pids:
            pid = pids.pop()
            with suppress(OSError):
                pids += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
                rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
                total += next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
        return total / 1024


def until(holds: Any) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


class Wire:
    """A connection to a server, by its port or its Unix socket, that can be cut or frozen, and mended."""

    def __init__(self, target: int | str) -> None:
        self._target = target
        self._open: set[socket.socket] = set()
        self._whole = True
        self._flowing = threading.Event()
        self._flowing.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """End all connections and take no more."""
        self._whole = False
        for end in list(self._open):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self._open.clear()

    def freeze(self) -> None:
        """Keep all connections, take new ones, and pass nothing on."""
        self._flowing.clear()

    def mend(self) -> None:
        self._whole = True
        self._flowing.set()

    def close(self) -> None:
        self.cut()
        self._flowing.set()
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if not self._whole:
                    near.close()
                    continue
                far = socket.socket(socket.AF_UNIX if isinstance(self._target, str) else socket.AF_INET)
                far.connect(self._target if isinstance(self._target, str) else ("127.0.0.1", self._target))
                self._open |= {near, far}
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._copy, args=(source, sink), daemon=True).start()

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self._flowing.wait()
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
