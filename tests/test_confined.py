"""Work in a process with bounds: what it returns and raises, and that breaking a bound ends it and nothing else."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from importlib import import_module

import pytest

from trainmedic.kb.confined import Confined, Exceeded


@pytest.fixture(scope="module")
def confined() -> Iterator[Confined]:
    with Confined(3.0, memory=400 * 1024**2) as processes:
        yield processes


def test_what_the_work_returns_or_raises_comes_back(confined: Confined) -> None:
    assert confined.run(sorted, [2, 1]) == [1, 2]
    assert confined.run(os.getpid) != os.getpid()
    with pytest.raises(ValueError):
        confined.run(int, "x")
    with pytest.raises(ModuleNotFoundError) as missing:
        confined.run(import_module, "no_such_module")
    assert missing.value.name == "no_such_module"


def test_a_bound_that_is_broken_ends_the_work_and_the_next_goes_on(confined: Confined) -> None:
    with pytest.raises(Exceeded, match="longer than 3 s"):
        confined.run(time.sleep, 60)
    with pytest.raises(Exceeded):
        confined.run(os._exit, 1)
    if sys.platform == "linux":
        with pytest.raises(Exceeded, match="400 MiB"):
            confined.run(bytearray, 10**9)
    assert confined.run(sorted, [2, 1]) == [1, 2]


def test_what_was_closed_starts_again() -> None:
    processes = Confined(5.0)
    processes.run(os.getpid)
    processes.close()
    assert processes.run(sorted, [2, 1]) == [1, 2]
    processes.close()
