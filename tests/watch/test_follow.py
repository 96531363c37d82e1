"""Reading a file while it grows."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainmedic.ui.watch.follow import GrowingFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "train.log"


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as stream:
        stream.write(data)


def test_a_file_need_not_be_there_yet(path: Path) -> None:
    file = GrowingFile(path)
    assert file.read() == ""
    append(path, b"one\n")
    assert file.read() == "one\n"
    assert file.read() == ""
    append(path, b"two\n")
    assert file.read() == "two\n"
    file.close()


def test_a_character_written_in_two_halves_arrives_whole(path: Path) -> None:
    file = GrowingFile(path)
    halves = "损".encode()
    append(path, halves[:1])
    assert file.read() == ""
    append(path, halves[1:])
    assert file.read() == "损"
    file.close()


def test_a_file_that_was_emptied_is_read_from_its_beginning(path: Path) -> None:
    file = GrowingFile(path)
    append(path, b"a long first run\n")
    assert file.read() == "a long first run\n"
    path.write_bytes(b"again\n")
    assert file.read() == "again\n"
    file.close()


def test_a_rotated_file_is_read_to_its_end_then_its_successor(path: Path) -> None:
    file = GrowingFile(path)
    append(path, b"one\n")
    assert file.read() == "one\n"
    append(path, b"last\n")
    path.rename(path.with_suffix(".1"))
    append(path, b"new\n")
    assert [file.read() for _ in range(3)] == ["last\n", "", "new\n"]
    file.close()


def test_what_an_earlier_run_wrote_can_be_passed_over(path: Path) -> None:
    append(path, b"loss is nan\n")
    file = GrowingFile(path, from_end=True)
    assert file.read() == ""
    append(path, b"step 1\n")
    assert file.read() == "step 1\n"
    file.close()
