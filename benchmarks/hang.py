"""How often a hang that really happened is judged right: the odd rank, its line, and the mechanism.

    python -m benchmarks.hang [REPETITIONS]

Ranks of gloo hang in scripts drawn by a seed (`tests/hang/scenarios.py`), are collected as `trainmedic doctor` does,
and judged with the scripts at hand and without them. Exit code 1 below 95 of 100.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.hang.scenarios import Ranks, Scenario, dumped, kinds, scenario, settle, told
from trainmedic.kb.hang.model import Kind, Verdict
from trainmedic.ui.doctor.stacks import Collected

ASKED = 0.95
COLUMNS = ("odd rank", "line", "mechanism")


def right(one: Scenario, verdict: Verdict | None) -> tuple[bool, bool, bool]:
    """Whether the odd rank (nobody, where the transport stands), its line, and the mechanism are told."""
    if verdict is None:
        return (False, False, False)
    odd = () if one.kind is Kind.TRANSPORT else (str(one.odd),)
    line = verdict.line.line if verdict.line is not None and one.deepest else 0
    return verdict.odd == odd, line == one.deepest, verdict.kind is one.kind


def main(repetitions: int) -> int:
    found: dict[str, Counter[tuple[str, str]]] = {"with scripts": Counter(), "without scripts": Counter()}
    runs: Counter[str] = Counter()
    every = list(kinds())
    with tempfile.TemporaryDirectory() as folder, Ranks(Path(folder)) as ranks:
        for first in range(0, repetitions, len(every)):
            drawn = [(first + n, kind) for n, kind in enumerate(every) if first + n < repetitions]
            started = [
                (one := scenario(kind, seed), ranks.start(f"train_{seed}", one, record=seed % 2 == 0))
                for seed, kind in drawn
            ]
            settle(3)
            for one, job in started:
                collected: Collected = dumped(job)
                ranks.stop(job)
                runs[str(one.kind)] += 1
                for how, counts in found.items():
                    answers = right(one, told(collected, scripts=how == "with scripts"))
                    counts.update((str(one.kind), column) for column, ok in zip(COLUMNS, answers, strict=True) if ok)
    print(f"| {'evidence':15} | {'mechanism':26} | runs | {' | '.join(COLUMNS)} |\n|---|---|---|---|---|---|")
    for how, counts in found.items():
        for kind in [*runs, "all"]:
            among = {kind} if kind in runs else set(runs)
            hits = [sum(n for (k, c), n in counts.items() if c == column and k in among) for column in COLUMNS]
            total = sum(runs[k] for k in among)
            print(f"| {how:15} | {kind:26} | {total:4} | {' | '.join(map(str, hits))} |")
    counts = found["with scripts"]
    least = min(sum(n for (_, c), n in counts.items() if c == column) for column in COLUMNS)
    return 0 if least >= ASKED * runs.total() else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100))
