"""Collecting on a machine: ranks are found, and no process is harmed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.every_case import every_case
from trainmedic.ui.doctor.stacks import collect, find_ranks

SLEEPS = "print('up', flush=True)\nimport time\ndef waits_here():\n    time.sleep(60)\nwaits_here()\n"
QUIET = SLEEPS
REGISTERED = "import faulthandler, signal\nfaulthandler.register(signal.SIGUSR1)\n" + SLEEPS
REQUEUES = "import signal\nsignal.signal(signal.SIGUSR1, lambda *_: exit(3))\n" + SLEEPS
ONLY_SAYS_SO = "# faulthandler.register(signal.SIGUSR1)\n" + SLEEPS


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[subprocess.Popen[bytes]]]:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)  # a machine without py-spy
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()


def start(folder: Path, script: str, rank: int) -> subprocess.Popen[bytes]:
    path = folder / f"train_{rank}.py"
    path.write_text(script)
    names = {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    with (folder / f"{rank}.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, str(path)], env={**os.environ, **names}, stdout=log, stderr=log)
    for _ in range(100):
        if (folder / f"{rank}.log").read_bytes():
            break
        time.sleep(0.05)
    return process


@every_case(("script", "answers"), [(REGISTERED, True), (QUIET, False), (REQUEUES, False), (ONLY_SAYS_SO, False)])
def test_only_a_process_that_prints_its_stack_is_signalled(
    script: str, answers: bool, tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    process = start(tmp_path, script, 0)
    started.append(process)
    ranks = [rank for rank in find_ranks(os.getpid()) if rank.pid == process.pid]
    found = collect(ranks, samples=1)
    assert ("waits_here" in str(found.files[0].content)) is answers
    assert bool(found.unread) is not answers
    assert process.poll() is None


def test_a_rank_that_should_run_here_and_does_not_is_gone(
    tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    started.append(start(tmp_path, REGISTERED, 1))
    ranks = find_ranks(os.getpid())
    assert [(rank.rank, rank.world, rank.alive) for rank in ranks] == [(1, 2, True), (0, 2, False)]
    assert "=== rank 0 of 2: gone ===" in str(collect(ranks, samples=1).files[0].content)
