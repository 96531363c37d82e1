"""A server for a benchmark: a fresh process on loopback, and a client that keeps its connection."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

HOST = "127.0.0.1"
COMMAND = "from trainmedic.ui.cli import command; command()"
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
START_LIMIT_S = 60.0
SETTLED_LIMIT_S = 600.0


class Client:
    """Sends JSON over one open connection; the standard library's client has the least overhead."""

    def __init__(self, port: int, timeout_s: float = 60.0) -> None:
        self._connection = http.client.HTTPConnection(HOST, port, timeout=timeout_s)

    def call(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Any:
        """Raises `RuntimeError` unless the status is 200, `OSError` if there is no connection."""
        status, raw = self.raw(method, path, None if body is None else encoded(body))
        if status != 200:
            raise RuntimeError(f"{method} {path}: {status} {raw[:300]!r}")
        return json.loads(raw)

    def raw(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        self._connection.request(method, path, body, {"Content-Type": "application/json"})
        response = self._connection.getresponse()
        return response.status, response.read()

    def close(self) -> None:
        self._connection.close()


def encoded(body: Mapping[str, object]) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode()


class Server:
    """``trainmedic serve`` as users start it, one worker, with its data in ``folder``."""

    def __init__(self, folder: Path, before: str = "") -> None:
        """``before`` is Python that the process runs first."""
        self.port = free_port()
        environment = {**own_environment(), **ONE_THREAD, "TRAINMEDIC_DATA_DIR": str(folder)}
        program = f"{before}\n{COMMAND}"
        arguments = [sys.executable, "-c", program, "serve", "--port", str(self.port)]
        self.started = time.perf_counter()
        self.process = subprocess.Popen(arguments, env=environment, stderr=subprocess.DEVNULL)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.process.terminate()
        self.process.wait(timeout=30)

    def client(self) -> Client:
        """A connected client, once the server listens. Raises `RuntimeError` if it does not start."""
        while time.perf_counter() - self.started < START_LIMIT_S:
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended with code {self.process.returncode}")
            try:
                socket.create_connection((HOST, self.port), timeout=0.2).close()
            except OSError:
                time.sleep(0.005)
                continue
            return Client(self.port)
        raise RuntimeError("the server did not begin to listen")

    def settle(self, client: Client) -> None:
        """Wait for the pages, which are loaded while the first requests are answered, and for the whole index, which
        takes a minute where the package has none."""
        while time.perf_counter() - self.started < SETTLED_LIMIT_S:
            status, _ = client.raw("GET", "/", None)
            if status != 503 and client.call("GET", "/readyz")["index"] == "ready":
                return
            time.sleep(0.2)
        raise RuntimeError("the pages were not loaded, or the index was not built")

    def memory_mb(self, field: str = "VmRSS") -> float:
        """Megabytes resident now (``VmRSS``) or at the peak (``VmHWM``). Linux only."""
        return memory_mb(self.process.pid, field)


def memory_mb(pid: int, field: str = "VmRSS") -> float:
    """Megabytes of one process, from ``/proc``. Raises `RuntimeError` if the field is missing."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"/proc/{pid}/status has no {field}")


def own_environment() -> dict[str, str]:
    """The environment without trainmedic's settings (benchmarks measure the defaults), with compiled modules."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRAINMEDIC_")}
    # An installed package has its compiled modules; a checkout run with this variable would compile at every start.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment.setdefault("PYTHONPYCACHEPREFIX", str(Path(".cache/benchmarks/pyc").absolute()))
    return environment


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
