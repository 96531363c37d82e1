"""What the callback costs a run: training steps of about 50 ms, each logged, alternately with it and without it."""

from __future__ import annotations

import logging
import statistics
import sys
import tempfile
import time

import torch
from transformers import TrainerControl, TrainerState, TrainingArguments

from benchmarks.table import Row, Table
from trainmedic.ui.watch.callback import TrainmedicCallback

STEP_S = 0.05
STEPS = 40
"""Steps of one block."""
BLOCKS = 9
"""Blocks with the callback; as many run without it."""


def matrices() -> tuple[torch.Tensor, int]:
    """A matrix and how often to multiply it so that a step takes `STEP_S`."""
    matrix = torch.randn(384, 384)
    for _ in range(20):
        matrix @ matrix
    fastest = STEP_S
    for _ in range(30):  # the machine may be busy for a while
        started = time.perf_counter()
        for _ in range(10):
            matrix @ matrix
        fastest = min(fastest, (time.perf_counter() - started) / 10)
    return matrix, max(1, round(STEP_S / fastest))


def main() -> int:
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    matrix, times = matrices()
    state, control = TrainerState(), TrainerControl()
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(output_dir=folder, use_cpu=True, report_to=[])
        callback = TrainmedicCallback()
        callback.on_train_begin(args, state, control, model=torch.nn.Linear(4, 4))
        blocks: dict[bool, list[float]] = {True: [], False: []}
        rows: list[float] = []
        step = 0
        for block in range(2 * BLOCKS):
            watched = block % 2 == 0
            started = time.perf_counter()
            for _ in range(STEPS):
                for _ in range(times):
                    matrix @ matrix
                if watched:
                    step += 1
                    state.global_step = step
                    logs = {"loss": 2.0 - step / 1000, "grad_norm": 1.0 + step % 7 / 10, "learning_rate": 1e-5}
                    before = time.perf_counter()
                    callback.on_log(args, state, control, logs=logs)
                    rows.append((time.perf_counter() - before) * 1e6)
            blocks[watched].append((time.perf_counter() - started) / STEPS * 1e3)
        callback.on_train_end(args, state, control)
    alone, with_it = statistics.median(blocks[False]), statistics.median(blocks[True])
    table = Table("callback")
    table.add("a step without the callback", blocks[False], "ms")
    table.add("a step with it, a row logged at each", blocks[True], "ms")
    table.add("a row, for the training thread", rows, "µs")
    share = max(0.0, with_it / alone - 1) * 100
    table.rows.append(Row(what="added to a step", values=[share], unit="%", budget=1.0))
    return table.print()


if __name__ == "__main__":
    sys.exit(main())
