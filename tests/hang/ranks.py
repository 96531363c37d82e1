"""The process that the ranks of a scenario are forked from: torch is imported once for all of them.

python -m tests.hang.ranks FOLDER      reads lines of JSON: {"script", "world", "port", "log"}, answers with the pids
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import threading
import time


def main() -> None:
    import torch._dynamo
    import torch.distributed  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # a rank that ends leaves no zombie
    _say("ready")
    for line in sys.stdin:
        job = json.loads(line)
        pids = []
        for rank in range(job["world"]):
            pid = os.fork()
            if pid == 0:
                _run(job, rank)
            pids.append(pid)
        _say(json.dumps(pids))


def _record(path: str) -> None:
    """Keeps the rank's flight recorder in a file, as PyTorch's watchdog writes it at a timeout."""
    from torch._C import _distributed_c10d as recorder

    while True:
        time.sleep(0.5)
        with open(f"{path}.new", "wb") as file:
            file.write(recorder._dump_fr_trace())  # type: ignore[attr-defined]
        os.replace(f"{path}.new", path)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _run(job: dict[str, str], rank: int) -> None:
    log = os.open(f"{job['log']}.{rank}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for number in (1, 2):
        os.dup2(log, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    names = {"RANK": str(rank), "WORLD_SIZE": str(job["world"]), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": job["port"]}
    os.environ.update(names, TORCH_FR_BUFFER_SIZE="200", GLOO_SOCKET_IFNAME="lo")
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    if job["record"]:
        threading.Thread(target=_record, args=(f"{job['log']}.trace_{rank}",), daemon=True).start()
    try:
        with open(job["script"], encoding="utf-8") as file:
            exec(compile(file.read(), job["script"], "exec"), {"__name__": "__main__"})
    finally:
        os._exit(1)


if __name__ == "__main__":
    main()
