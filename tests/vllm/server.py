"""The real vLLM server on CPU, started and stopped around a test or a benchmark.

python -m tests.vllm.server [further options of vLLM]      serves the tiny model until it is interrupted
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from tests.vllm import environment, tiny
from trainmedic.service.settings import Settings
from trainmedic.ui.cli import parser
from trainmedic.ui.vllm import command as llm

HOST = "127.0.0.1"
NAME = "tiny"
"""What the model is called."""
KEY = "the-key-of-the-doomed-server"
"""What a server started with ``--api-key`` is asked with."""
RUNNING, WRITTEN = "vllm:num_requests_running", "vllm:generation_tokens_total"
"""The gauge of texts being written, and the counter of tokens written so far."""
START_LIMIT_S = 240.0
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_HOST_IP": HOST,
    # One process instead of two, and then one thread: two that spin would fight with the server for two cores.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "OMP_NUM_THREADS": "1",
}
ON_CPU = {
    "--dtype": "float32",
    "--kv-cache-memory-bytes": str(128 * 1024 * 1024),
    # By default 128 on CPU: shorter beginnings would never be found in the prefix cache.
    "--block-size": "32",
    "--max-num-seqs": "32",
    "--max-num-batched-tokens": "1024",
    "--tool-call-parser": "hermes",
}
SWITCHES = ("--enforce-eager", "--enable-auto-tool-choice")


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers. ``url`` is its root, without ``/v1``."""

    url: str
    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        """End it as a crash would: at once, connections and all."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextmanager
def running(model: Path, log: Path, *, extra: Sequence[str] = ()) -> Iterator[Server]:
    """The model in ``model``, served as `NAME` with the flags of ``trainmedic llm`` and what a CPU needs besides.

    Raises `RuntimeError` with the log's end where it never answers.
    """
    url = f"http://{HOST}:{free_port()}"
    # The command "vllm serve" looks for a distribution of another name than the CPU build has; the module does not.
    command = [str(environment.python()), "-m", "vllm.entrypoints.openai.api_server", "--model"]
    command += flags(model, url, extra)
    with log.open("wb") as sink:
        process = subprocess.Popen(
            command,
            env={**os.environ, **ENVIRONMENT},
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait(url, process, log)
        yield Server(url, process)
    finally:
        _stop(process)


def flags(model: Path, url: str, extra: Sequence[str]) -> list[str]:
    """What ``trainmedic llm`` would hand to vLLM here."""
    on_cpu = [part for option in ON_CPU.items() for part in option]
    given = ["llm", "--model", str(model), "--port", str(urlsplit(url).port), "--", *on_cpu, *SWITCHES, *extra]
    settings = Settings(model_name=NAME, model_context_tokens=tiny.CONTEXT)
    return llm.flags(parser(["llm"]).parse_args(given), settings)


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + START_LIMIT_S
    while time.monotonic() < until:
        if process.poll() is not None:
            break
        try:
            if httpx.get(f"{url}/health", timeout=2.0).is_success:
                return
        except httpx.HTTPError:
            time.sleep(0.1)
    last = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-30:])
    raise RuntimeError(f"vLLM ended with {process.poll()} or did not answer in {START_LIMIT_S:.0f} s:\n{last}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def metrics(url: str) -> dict[str, float]:
    """The server's counters and gauges by name (``vllm:num_requests_running`` ...), summed over their labels."""
    found: dict[str, float] = {}
    for line in httpx.get(f"{url}/metrics", timeout=10.0).raise_for_status().text.splitlines():
        if match := re.fullmatch(r"([a-z_:]+)(?:\{.*\})? (\S+)", line):
            found[match[1]] = found.get(match[1], 0.0) + float(match[2])
    return found


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def main(extra: Sequence[str]) -> int:
    """Serve the tiny model until interrupted; its root is printed when it answers."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with running(tiny.make(place / NAME), place / "vllm.log", extra=extra) as server:
            sys.stdout.write(f"{server.url}\n")
            sys.stdout.flush()
            try:
                server.process.wait()
            except KeyboardInterrupt:
                return 0
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
