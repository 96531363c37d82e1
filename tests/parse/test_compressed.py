"""Compressed logs are read as what they hold; bombs and damaged files as far as the bounds allow."""

from __future__ import annotations

import bz2
import gzip
import sys
import time
import tracemalloc
from collections.abc import Callable

import pytest
import zstandard

from tests.every_case import every_case
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.parse.text import compressed
from trainmedic.kb.parse.text.compressed import expand, plain_name

LOG = b"{'loss': 1.5, 'grad_norm': 2.0, 'learning_rate': 1e-05, 'epoch': 0.1}\n" * 3 + b"{'loss': nan, 'epoch': 0.2}\n"
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}


@every_case("ending", COMPRESS)
def test_a_compressed_log_is_read_with_its_own_lines(ending: str) -> None:
    name = f"train.log.{ending}"
    evidence = parse("", (Attachment(name=name, content=COMPRESS[ending](LOG)),))
    (sign,) = [signal for signal in evidence.signals if signal.kind == "loss_nan"]
    assert (sign.span.attachment, sign.span.line) == (name, 4)
    receipt = next(item for item in evidence.receipt.inputs if item.name == name)
    plain = parse("", (Attachment(name="train.log", content=LOG),)).receipt.inputs[1]
    assert (receipt.kind, receipt.lines, receipt.read) == (plain.kind, plain.lines, True)
    assert receipt.note.startswith("decompressed")


@every_case("ending", COMPRESS)
def test_parts_compressed_one_by_one_are_one_text(ending: str) -> None:
    packed = COMPRESS[ending](b"first\n") + COMPRESS[ending](b"second\n")
    expanded = expand(packed + b"\0" * 512)
    assert expanded is not None
    assert (expanded.content, expanded.complete) == (b"first\nsecond\n", True)


@every_case("ending", COMPRESS)
def test_what_is_damaged_is_read_as_far_as_it_goes_and_that_is_said(ending: str) -> None:
    packed = COMPRESS[ending](b"".join(b"step %d loss %d\n" % (n, n * n) for n in range(50_000)))
    (problem,) = parse("", (Attachment(name="a.log", content=packed[:-100]),)).receipt.problems
    assert problem.code == "truncated"
    torn = bytearray(packed)
    torn[len(torn) // 2] ^= 0xFF
    expanded = expand(bytes(torn))
    assert expanded is not None
    assert not expanded.complete


def test_a_bomb_is_expanded_only_up_to_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compressed, "MOST_EXPANDED", 8_000_000)
    monkeypatch.setattr(compressed, "MOST_KEPT", 1_000_000)
    expanded = expand(gzip.compress(b"x" * 99 + b"\n" + b"\0" * 100_000_000))
    assert expanded is not None
    assert not expanded.complete
    assert len(expanded.content) <= 1_600_000
    assert expanded.content.startswith(b"xxx")


@pytest.mark.parametrize("ending", COMPRESS)
def test_the_start_of_a_file_is_unpacked_and_no_more_of_it(ending: str) -> None:
    lines = b"".join(b"step %d loss %d\n" % (n, n * n) for n in range(50_000))
    assert compressed.start_of(COMPRESS[ending](lines), 10_000) == lines[:10_000]
    assert compressed.start_of(COMPRESS[ending](b"few\n"), 10_000) == b"few\n"
    bomb = COMPRESS[ending](b"\0" * 60_000_000)
    tracemalloc.start()
    before = time.process_time()
    start = compressed.start_of(bomb, 200_000)
    used, (_, most) = time.process_time() - before, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert start == b"\0" * 200_000
    assert most < 8_000_000
    assert used < 0.5


def test_nothing_but_compressed_content_has_a_start_to_unpack() -> None:
    assert compressed.start_of(b"loss is nan", 100) is None


def test_a_file_of_many_empty_parts_ends_too() -> None:
    expanded = expand(gzip.compress(b"") * (compressed.MOST_MEMBERS + 1))
    assert expanded is not None
    assert (expanded.content, expanded.complete) == (b"", False)


def test_without_its_library_a_file_is_named_as_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    receipt = parse("", (Attachment(name="a.log.zst", content=COMPRESS["zst"](LOG)),)).receipt
    assert (receipt.inputs[1].kind, receipt.inputs[1].read) == ("binary", False)
    assert ["pip install 'trainmedic[zstd]'" in problem.message for problem in receipt.problems] == [True]
    assert compressed.start_of(COMPRESS["zst"](LOG), 100) is None


def test_what_expands_a_thousandfold_is_expanded_in_pieces() -> None:
    plain = b"\0" * 3_000_000
    for compress in COMPRESS.values():
        expanded = expand(compress(plain))
        assert expanded is not None
        assert (expanded.content, expanded.complete) == (plain, True)


@every_case(("name", "plain"), [("run/train.log.gz", "run/train.log"), ("a.GZ", "a"), ("gz", "gz"), (".gz", ".gz")])
def test_the_ending_of_the_compression_says_nothing_of_the_kind(name: str, plain: str) -> None:
    assert plain_name(name) == plain
