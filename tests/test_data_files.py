"""Texts that are shipped compressed come back as they were written."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from trainmedic.kb.data_files import Texts, write_texts

TEXTS = {"trl": "one\nmessage 消息", "peft": "x" * 50, "verl": ""}


@pytest.mark.parametrize("block", [1, 60, 1_000])
def test_what_is_written_is_read_whatever_is_compressed_together(tmp_path: Path, block: int) -> None:
    write_texts(tmp_path / "new" / "texts.xz", TEXTS, block)
    assert list(Texts(tmp_path / "new" / "texts.xz").items()) == sorted(TEXTS.items())


def test_a_text_is_unpacked_without_the_other_blocks(tmp_path: Path) -> None:
    path = tmp_path / "texts.xz"
    write_texts(path, TEXTS, block=1)
    head, _, packed = path.read_bytes().partition(b"\n")
    path.write_bytes(head + b"\n" + packed[:-10])
    texts = Texts(path)
    assert texts["peft"] == TEXTS["peft"]
    with pytest.raises(lzma.LZMAError):
        texts["verl"]
