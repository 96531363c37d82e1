"""From the start of the process to the first answer over REST.

    python -m benchmarks.startup

Each start is a new process with the package's own index, which is made first if it does not fit; the first start in a
new data folder is listed too. Budget (median): 2 s.

A fresh checkout has no index at all: its first answers search by words, while another process embeds the texts. The
program measures how long the first one takes (budget: 10 s), one while they are embedded, and until the index is whole
(budget: 60 s). Exit code 1 if a budget is missed.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.ask import CHINESE, ENGLISH, questions
from benchmarks.indexing import NO_PACKAGE
from benchmarks.serving import Server
from benchmarks.table import Table
from trainmedic.ui.loading import prebuild

BUDGET_S = 2.0
FRESH_S = 10.0
WHOLE_S = 60.0
STARTS = 7
PAUSE_S = 1.0
"""Between two questions: a service is not asked without a break."""


def start_times(folder: Path, question: str) -> tuple[float, float]:
    """Seconds until the server listens, and until its first answer."""
    with Server(folder) as server:
        client = server.client()
        listening = time.perf_counter() - server.started
        client.call("POST", "/v1/ask", {"question": question})
        answered = time.perf_counter() - server.started
        client.close()
    return listening, answered


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshStart:
    """Seconds from the start of the process, but for those of each answer in ``meanwhile``."""

    listening: float
    answered: float
    whole: float
    meanwhile: tuple[float, ...]


def fresh_start(folder: Path, texts: Sequence[str]) -> FreshStart:
    """A start without any index, and questions until it is whole. Raises `RuntimeError` if an answer is of another kind
    than ``/readyz`` says."""
    with Server(folder, NO_PACKAGE) as server:
        client = server.client()
        listening = time.perf_counter() - server.started
        meanwhile = []
        for text in itertools.cycle(texts):
            asked = time.perf_counter()
            answer = client.call("POST", "/v1/ask", {"question": text})
            meanwhile.append(time.perf_counter() - asked)
            if len(meanwhile) == 1:
                answered = time.perf_counter() - server.started
                if not answer["words_only"]:
                    raise RuntimeError("the first answer had vectors to search")
            if client.call("GET", "/readyz")["index"] == "ready":
                break
            time.sleep(PAUSE_S)
        whole = time.perf_counter() - server.started
        client.close()
    return FreshStart(listening=listening, answered=answered, whole=whole, meanwhile=tuple(meanwhile[1:]))


def main() -> int:
    table = Table("cold start")
    prebuild()
    texts = questions((*ENGLISH, *CHINESE), 1)
    with TemporaryDirectory() as first, TemporaryDirectory() as fresh_folder:
        building = start_times(Path(first), texts[-1])
        times = [start_times(Path(first), question) for question in texts[:STARTS]]
        table.add("process start to listening", [listening for listening, _ in times], "s")
        table.add("process start to the first answer", [answered for _, answered in times], "s", BUDGET_S)
        table.add("the very first one, in a new data folder", [building[1]], "s")
        fresh = fresh_start(Path(fresh_folder), texts)
        table.add("a start without any index, to listening", [fresh.listening], "s")
        table.add("a start without any index, to the first answer", [fresh.answered], "s", FRESH_S)
        table.add("answers while the texts are embedded", fresh.meanwhile, "s")
        table.add("a start without any index, until it is whole", [fresh.whole], "s", WHOLE_S)
    return table.print()


if __name__ == "__main__":
    sys.exit(main())
