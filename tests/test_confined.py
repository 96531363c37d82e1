"""Work in a process with bounds: what it returns and raises, that breaking a bound ends it and nothing else, and that
a process which was taken over can send nothing but data."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import confined_work as work
from trainmedic.kb.confined import Confined, Exceeded, TookTooLong, WorkFailed


@pytest.fixture(scope="module")
def confined() -> Iterator[Confined]:
    with Confined(3.0, memory=400 * 1024**2) as processes:
        yield processes


def test_what_the_work_returns_or_raises_comes_back(confined: Confined, caplog: pytest.LogCaptureFixture) -> None:
    assert confined.run(work.ordered, [2, 1]) == [1, 2]
    assert confined.run(work.pid) == confined.run(work.pid) != os.getpid()
    with pytest.raises(ValueError, match="invalid literal"):
        confined.run(work.number, "x")
    with pytest.raises(ModuleNotFoundError) as missing:
        confined.run(work.imported, "no_such_module")
    assert missing.value.name == "no_such_module"
    with pytest.raises(WorkFailed):
        confined.run(work.failing, "what the user wrote")
    assert "KeyError" in caplog.text
    assert "in failing" in caplog.text
    assert "what the user wrote" not in caplog.text
    with pytest.raises(TypeError, match="not plain data"):
        confined.run(time.localtime)


@pytest.mark.parametrize(
    ("broken", "arguments", "message"),
    [
        (work.sleep, (60,), "longer than 3 s"),
        (work.leave, (), "400 MiB"),
        pytest.param(
            work.swallow, (10**9,), "400 MiB", marks=pytest.mark.skipif(sys.platform != "linux", reason="no bound")
        ),
        (work.long, (65 * 1024**2,), "400 MiB"),
        (work.mistyped, (), "not a result"),
    ],
)
def test_a_bound_that_is_broken_ends_the_work_and_the_next_goes_on(
    confined: Confined, broken: Callable[..., Any], arguments: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(Exceeded, match=message):
        confined.run(broken, *arguments)
    assert confined.run(work.ordered, [2, 1]) == [1, 2]


@pytest.mark.parametrize(
    ("how", "refused"),
    [
        ("pickle", Exceeded),
        ("too long", Exceeded),
        ("other data", Exceeded),
        ("never ends", TookTooLong),
        ("unknown kind", Exceeded),
    ],
)
def test_a_process_that_was_taken_over_reaches_nothing_here(
    confined: Confined, how: str, refused: type[Exception]
) -> None:
    with pytest.raises(refused):
        confined.run(work.taken_over, how)
    assert work.REACHED == []
    assert confined.run(work.ordered, [2, 1]) == [1, 2]


def test_what_was_closed_gives_up_its_work_and_starts_again() -> None:
    processes = Confined(60.0)
    processes.start()
    threading.Timer(1.0, processes.close).start()
    with pytest.raises(WorkFailed, match="closed"):
        processes.run(work.sleep, 60)
    assert processes.run(work.ordered, [2, 1]) == [1, 2]
    processes.close()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_processes_end_with_a_killed_parent() -> None:
    lines = "from trainmedic.kb.confined import Confined\nfrom tests import confined_work as work\nimport time\n"
    code = f"{lines}processes = Confined(9.0)\nprint(processes.run(work.pid), flush=True)\ntime.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = Path("/proc", parent.stdout.readline().strip())
        assert child.exists()
        parent.kill()
    end = time.monotonic() + 9
    while child.exists() and "zombie" not in (child / "status").read_text():
        assert time.monotonic() < end
        time.sleep(0.05)
