"""From the start of the process to the first answer over REST.

    python -m benchmarks.startup

Each start is a new process with the package's own index, which is made first if it does not fit; the first start in a
new data folder is listed too. Budget (median): 3 s. Exit code 1 if it is missed.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.ask import CHINESE, ENGLISH, questions
from benchmarks.serving import SERVE, Server, own_environment
from benchmarks.table import Table
from trainmedic.ui.loading import prebuild

BUDGET_S = 3.0
STARTS = 7


def start_times(folder: Path, question: str) -> tuple[float, float]:
    """Seconds until the server listens, and until its first answer."""
    with Server(folder) as server:
        client = server.client()
        listening = time.perf_counter() - server.started
        client.call("POST", "/v1/ask", {"question": question})
        answered = time.perf_counter() - server.started
        client.close()
    return listening, answered


def build_time(folder: Path) -> float:
    """Seconds of ``trainmedic index build``, the process included; the package's index has the vectors already."""
    environment = {**own_environment(), "TRAINMEDIC_DATA_DIR": str(folder)}
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", SERVE, "index", "build"], env=environment, check=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - started


def main() -> int:
    table = Table("cold start")
    prebuild()
    texts = questions((*ENGLISH, *CHINESE), 1)
    with TemporaryDirectory() as first, TemporaryDirectory() as other:
        building = start_times(Path(first), texts[-1])
        times = [start_times(Path(first), question) for question in texts[:STARTS]]
        table.add("process start to listening", [listening for listening, _ in times], "s")
        table.add("process start to the first answer", [answered for _, answered in times], "s", BUDGET_S)
        table.add("the very first one, in a new data folder", [building[1]], "s")
        table.add("trainmedic index build, no text embedded", [build_time(Path(other)) for _ in range(2)], "s")
    return table.print()


if __name__ == "__main__":
    sys.exit(main())
