"""Answers per second, over HTTP with history, against what an encoder alone embeds on all cores.

    python -m benchmarks.throughput

One process of the service, and one for each core on one data folder; as many stock ``SentenceTransformer.encode`` and
default encoders as cores, one thread each. Clients send the questions of `benchmarks.ask`, alone; they take their share
of the same cores. Budget: the stock encoders do at most 1.67 times as many questions (the service 0.6 of theirs); the
default encoder's figure, of which the service is a part, stands beside it. Exit code 1 if it is missed. Needs the
``st`` extra.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.ask import CHINESE, ENGLISH
from benchmarks.serving import ONE_THREAD, Client, Server
from benchmarks.table import Row, Table

BUDGET = 1 / 0.6
SECONDS = 10.0
CLIENTS = 4
"""For each process of the service."""
ROUNDS = 3
CORES = os.cpu_count() or 1
ENCODING = """
import sys, time
from benchmarks.ask import CHINESE, ENGLISH
if sys.argv[1] == "stock":
    from benchmarks.ask import stock_encoder
    encode = stock_encoder()
else:
    from trainmedic.kb.store.embedder import OnnxEmbedder
    encode = OnnxEmbedder().embed_query
done, texts = 0, ENGLISH + CHINESE
for warm_up in texts:
    encode(warm_up)
print("ready", flush=True)
sys.stdin.readline()
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    encode(texts[done % len(texts)].format(n=done))
    done += 1
print(done)
"""


def embedded(kind: str) -> float:
    """Questions per second of one encoder on each core."""
    command = [sys.executable, "-c", ENCODING, kind, str(SECONDS)]
    started = [
        subprocess.Popen(
            command,
            env={**os.environ, **ONE_THREAD},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for _ in range(CORES)
    ]
    for process in started:
        assert process.stdout is not None
        process.stdout.readline()
    for process in started:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    return sum(int(process.communicate()[0]) for process in started) / SECONDS


def answered(processes: int) -> float:
    """Answers per second of so many processes of the service."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        servers = [stack.enter_context(Server(folder)) for _ in range(processes)]
        for server in servers:
            client = server.client()
            server.settle(client)
            client.close()
        numbers = count()

        def ask(server: Server, end: float) -> int:
            client, done = Client(server.port), 0
            while time.monotonic() < end:
                number = next(numbers)
                question = (ENGLISH + CHINESE)[number % (len(ENGLISH) + len(CHINESE))].format(n=number)
                client.call("POST", "/v1/ask", {"question": question})
                done += 1
            client.close()
            return done

        with ThreadPoolExecutor(CLIENTS * processes) as clients:
            for seconds in (2.0, SECONDS):  # warm first
                end = time.monotonic() + seconds
                asked = [clients.submit(ask, server, end) for server in servers for _ in range(CLIENTS)]
                done = sum(future.result() for future in asked)
        return done / SECONDS


def main() -> int:
    table = Table(f"throughput on {CORES} cores")
    ours: dict[int, list[float]] = {number: [] for number in sorted({1, CORES})}
    theirs: dict[str, list[float]] = {"stock": [], "default": []}
    for _ in range(ROUNDS):
        for kind, rates in theirs.items():
            rates.append(embedded(kind))
        for processes, rates in ours.items():
            rates.append(answered(processes))
    for kind, rates in theirs.items():
        table.add(f"{kind} encoder alone, questions per second", rates, "1/s")
    for processes, rates in ours.items():
        table.add(f"service, processes: {processes}, answers per second", rates, "1/s")
        for kind, alone in theirs.items():
            ratios = [theirs_rate / rate for theirs_rate, rate in zip(alone, rates, strict=True)]
            budget = BUDGET if kind == "stock" and processes == CORES else None
            table.rows.append(
                Row(what=f"{kind} encoder ÷ service ({processes})", values=ratios, unit="×", budget=budget)
            )
    return table.print()


if __name__ == "__main__":
    sys.exit(main())
