"""A 50 MB log attached over HTTP: time, memory, and what the receipt says about the skipped lines.

    python -m benchmarks.biglog

The nan is at the very end, as in a run that was stopped. The server is asked eight times.
Budgets: each answer within 5 s, the process never above 700 MB, its peak after the last answer at most a tenth over
that after the third, the log marked as truncated with the lines that were left out, and the nan found. Linux only.
Exit code 1 if one is missed.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.ask import config
from benchmarks.serving import Server, encoded
from benchmarks.table import Table

BYTES = 50_000_000
ANSWER_BUDGET_S = 5.0
PEAK_BUDGET_MB = 700.0
GROWTH_BUDGET = 1.1
TIMES = 8
SETTLED = 3


def big_log() -> str:
    """`BYTES` of training log; the last rows are nan."""
    lines, size, step = [], 0, 0
    while size < BYTES - 2_000:
        step += 1
        line = (
            f"{{'loss': {2.5 / (1 + step / 5_000):.4f}, 'grad_norm': {1 + step % 7 / 10:.3f}, 'learning_rate': 1e-06, "
            f"'rewards/accuracies': 0.6, 'epoch': {step / 200_000:.4f}, 'global_step': {step}}}"
        )
        lines.append(line)
        size += len(line) + 1
    for late in range(5):
        lines.append(f"{{'loss': nan, 'grad_norm': nan, 'learning_rate': 1e-06, 'global_step': {step + late + 1}}}")
    return "\n".join(lines) + "\n"


def problems_of(answer: dict[str, Any]) -> list[str]:
    inputs = {item["name"]: item for item in answer["receipt"]["inputs"]}
    receipt = inputs["train.log"]
    kinds = {signal["kind"] for signal in answer["signals"]}
    codes = {problem["code"] for problem in answer["receipt"]["problems"]}
    problems = []
    if not receipt["truncated"] or "not read" not in receipt["note"] or "truncated" not in codes:
        problems.append("the receipt does not say what was not read")
    if receipt["lines"] < 200_000:
        problems.append(f"the receipt counts only {receipt['lines']} lines")
    if not kinds & {"loss_nan", "grad_norm_nan"}:
        problems.append("the nan at the end was not seen")
    return problems


def main() -> int:
    body = encoded(
        {
            "question": "DPO with ms-swift, the loss became nan over night. What is wrong?",
            "attachments": [
                {"name": "train.sh", "content": config(1)},
                {"name": "train.log", "content": big_log()},
            ],
        }
    )
    table = Table(f"a log of {BYTES // 1_000_000} MB attached")
    seconds, after, peaks, problems = [], [], [], []
    with TemporaryDirectory() as folder, Server(Path(folder)) as server:
        client = server.client()
        server.settle(client)
        client.call("POST", "/v1/ask", {"question": "loss is nan"})
        before = server.memory_mb()
        for _ in range(TIMES):
            started = time.perf_counter()
            status, raw = client.raw("POST", "/v1/ask", body)
            seconds.append(time.perf_counter() - started)
            after.append(server.memory_mb())
            peaks.append(server.memory_mb("VmHWM"))
            problems += [f"status {status}"] if status != 200 else problems_of(json.loads(raw))
        client.close()
    table.add("POST /v1/ask", seconds, "s", ANSWER_BUDGET_S)
    table.add("memory before", [before], "MB")
    table.add("memory after each answer", after, "MB")
    table.add("memory at most", peaks[-1:], "MB", PEAK_BUDGET_MB)
    table.add("peak after the last, of that after the third", [peaks[-1] / peaks[SETTLED - 1]], "×", GROWTH_BUDGET)
    code = table.print()
    for problem in dict.fromkeys(problems):
        print(f"✗ {problem}")
    return 1 if problems or max(seconds) > ANSWER_BUDGET_S else code


if __name__ == "__main__":
    sys.exit(main())
