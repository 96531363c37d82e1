"""The memory that counts against the limit of a container is that of the readers too."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from trainmedic.service.api.memory import ProcessTreeMemory

STATM = "1000 {pages} 5 1 0 100 0"


def process(proc: Path, pid: int, parent: int, *, pages: int, shared_kb: int | None = None) -> None:
    folder = proc / str(pid)
    folder.mkdir(parents=True)
    (folder / "stat").write_text(f"{pid} (a (strange) name) S {parent} 1 1 0")
    (folder / "statm").write_text(STATM.format(pages=pages))
    if shared_kb is not None:
        (folder / "smaps_rollup").write_text(f"0-f ---p 0 00:00 0 [rollup]\nRss: 9999 kB\nPss: {shared_kb} kB\n")


def bytes_of(proc: Path, pid: int) -> list[float]:
    return [sample.value for family in ProcessTreeMemory(pid, proc).collect() for sample in family.samples]


def test_the_descendants_of_the_process_count_and_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sysconf", lambda name: 4096)
    process(tmp_path, 10, 1, pages=100)
    process(tmp_path, 11, 10, pages=20)
    process(tmp_path, 12, 11, pages=3)
    process(tmp_path, 13, 1, pages=5000)
    assert bytes_of(tmp_path, 10) == [123 * 4096]


def test_what_processes_share_counts_once(tmp_path: Path) -> None:
    process(tmp_path, 10, 1, pages=100, shared_kb=60)
    process(tmp_path, 11, 10, pages=100, shared_kb=40)
    assert bytes_of(tmp_path, 10) == [100 * 1024]


def test_a_system_without_such_a_folder_has_no_figure(tmp_path: Path) -> None:
    assert bytes_of(tmp_path / "proc", 10) == []


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_this_process_has_one() -> None:
    ((family,),) = [[*ProcessTreeMemory().collect()]]
    assert family.samples[0].value > 1e7
