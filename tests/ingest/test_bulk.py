"""Many threads: embedded while others are read, stored in order, and the same store however often a run is killed."""

from __future__ import annotations

import hashlib
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from benchmarks.write_ups import hostile, write_ups
from trainmedic.ingest.items import Checkpoint, Discussion, Item, Message, Raw
from trainmedic.ingest.threads.facts import LONGEST_LINE, digest_of, read_item
from trainmedic.ingest.threads.local import Local
from trainmedic.ingest.threads.stages import Embed
from trainmedic.ingest.threads.sync import BATCH, SyncSummary, sync
from trainmedic.kb.errors import StoreError
from trainmedic.kb.threads.store import ThreadStore

DIMENSION = 4
COUNT = 300
ENCODERS = 2


def embed(texts: Sequence[str]) -> np.ndarray:
    """Each text has its own vector."""
    digests = [hashlib.sha256(text.encode("utf-8", "replace")).digest()[:DIMENSION] for text in texts]
    return np.array([[byte / 255 for byte in digest] for digest in digests], np.float32)


def store_in(folder: Path) -> ThreadStore:
    return ThreadStore(folder, "encoder", DIMENSION)


def notes(count: int) -> Iterator[Discussion]:
    for number in range(count):
        yield Discussion(
            origin="f", key=f"{number:05d}", title=f"GRPO hangs {number}", messages=(Message(text="At step 3."),)
        )


def local(few: int = COUNT, embed: Embed = embed) -> Local:
    return Local(embed, encoders=ENCODERS, few=few)


AHEAD = local().ahead


def ingest(folder: Path, items: Iterator[Item], executor: Local | None = None) -> SyncSummary:
    return sync("s", items, store_in(folder), executor or local(), lambda vector: {"hang": float(vector[0])}).summary


def content(folder: Path) -> tuple[list[tuple[str, str]], list[tuple[str, str]], dict[str, bytes]]:
    """The threads, the words of their passages, and the vectors that belong to a thread."""
    with sqlite3.connect(folder / "threads.sqlite") as connection:
        threads = connection.execute("select id, data from threads order by id").fetchall()
        words = connection.execute(
            "select id, terms from passages join threads on threads.number = passages.thread order by id, terms"
        ).fetchall()
    with sqlite3.connect(folder / "vectors.sqlite") as connection:
        vectors = dict(connection.execute("select id, vector from vectors"))
    return threads, words, vectors


RUN = """
import sys
from pathlib import Path
from benchmarks.write_ups import write_ups
from tests.ingest.test_bulk import COUNT, ingest, local

def announced():
    for number, item in enumerate(write_ups(COUNT, 7)):
        print(number, flush=True)
        yield item

ingest(Path(sys.argv[1]), announced(), local(few=64))
"""


@pytest.mark.slow
def test_a_run_that_is_killed_again_and_again_ends_like_one_that_is_not(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    ingest(whole, write_ups(COUNT, 7))
    stored = [0]
    for last in (30, 110, 170, 230, 290):
        command = [sys.executable, "-c", RUN, str(killed)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert f"{last}\n" in process.stdout
            process.send_signal(signal.SIGKILL)
        stored.append(store_in(killed).count())
    assert stored == sorted(stored)
    assert len(set(stored)) > 2, "kills before the first transaction or after the last one show nothing"
    ingest(killed, write_ups(COUNT, 7))
    assert content(killed) == content(whole)


@pytest.mark.slow
def test_processes_that_read_store_the_same(tmp_path: Path) -> None:
    def items() -> Iterator[Item]:
        yield from write_ups(30, 3)
        yield Checkpoint(value="thirty")
        yield from notes(10)

    here, there = tmp_path / "here", tmp_path / "there"
    first = ingest(here, items())
    assert ingest(there, items(), local(few=0)) == first
    assert content(there) == content(here)
    assert store_in(there).checkpoint("s") == "thirty"
    assert ingest(there, items(), local(few=0)).unchanged == first.added


def test_vectors_belong_to_their_passages_and_threads(tmp_path: Path) -> None:
    ingest(tmp_path, notes(AHEAD + BATCH + 1))
    _, _, vectors = content(tmp_path)
    assert len(vectors) == AHEAD + BATCH + 1
    expected = embed(["GRPO hangs 17\nAt step 3."])[0].astype(np.float16).tobytes()
    assert vectors["s:00017#0"] == expected


def test_a_checkpoint_is_set_when_everything_before_it_is_stored(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    seen: list[tuple[int, str]] = []

    def items() -> Iterator[Item]:
        yield from notes(10)
        yield Checkpoint(value="ten")
        seen.append((store.count(), store.checkpoint("s")))

    sync("s", items(), store, local(), lambda vector: {})
    assert seen == [(10, "ten")]


def test_reading_goes_on_while_texts_are_embedded(tmp_path: Path) -> None:
    read = threading.Event()

    def items() -> Iterator[Item]:
        yield from notes(AHEAD - 1)
        read.set()

    def slow(texts: Sequence[str]) -> np.ndarray:
        assert read.wait(60)
        return embed(texts)

    store = store_in(tmp_path)
    sync("s", items(), store, local(embed=slow), lambda vector: {})
    assert store.count() == AHEAD - 1


def test_reading_does_not_run_far_ahead_of_what_is_stored(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    ahead = 0

    def items() -> Iterator[Item]:
        nonlocal ahead
        for number, note in enumerate(notes(4 * AHEAD)):
            ahead = max(ahead, number - store.count())
            yield note

    sync("s", items(), store, local(), lambda vector: {})
    assert BATCH < ahead <= AHEAD + BATCH


def test_an_encoder_that_fails_ends_the_run_and_what_was_stored_stays(tmp_path: Path) -> None:
    def failing(texts: Sequence[str]) -> np.ndarray:
        if any("hangs 299" in text for text in texts):
            raise StoreError("no answer")
        return embed(texts)

    interval = sys.getswitchinterval()
    store = store_in(tmp_path)
    with pytest.raises(StoreError, match="no answer"):
        sync("s", notes(300), store, local(embed=failing), lambda vector: {})
    assert BATCH <= store.count() < 300
    assert sys.getswitchinterval() == interval


def test_a_saved_page_that_takes_too_long_to_read_costs_its_item_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainmedic.ingest.threads.local.DEADLINE_S", 3.0)
    hostile = "<p>" + "<div class=a>" * 200_000 + "x"
    pages = [Raw(origin=f"{n}.html", content=text, format="html") for n, text in enumerate(("<p>hello</p>", hostile))]
    summary = ingest(tmp_path, iter([*pages, *notes(1)]))
    assert [(failure.origin, failure.reason) for failure in summary.failures] == [
        ("1.html", "takes longer than 3 s to read")
    ]
    assert summary.added == 2


def test_hostile_write_ups_are_stored_or_reported_and_end_nothing(tmp_path: Path) -> None:
    items = [hostile(number, random.Random(number)) for number in range(12)]
    store = store_in(tmp_path)
    summary = sync("s", [*items, *notes(1)], store, local(), lambda vector: {}).summary
    assert summary.added + len(summary.failures) == len(items) + 1
    assert store.digests("s").keys() >= {"00000"}


def test_a_failure_in_a_reply_is_not_quoted_as_what_the_reporter_saw(tmp_path: Path) -> None:
    reply = Message(text="I have this one:\n```\nValueError: another thing\n```")
    question = Message(text="It hangs at step 3.", role="reporter")
    item = Discussion(origin="f", key="1", title="GRPO hangs", messages=(question, reply))
    ingest(tmp_path, iter([item]))
    [thread] = store_in(tmp_path).get(["s:1"])
    assert [quote.text for quote in thread.symptom] == ["GRPO hangs", "It hangs at step 3."]


def test_of_a_huge_line_only_the_start_is_kept(tmp_path: Path) -> None:
    raw = Raw(origin="a.txt", content=f"Long\n{'word ' * 100_000}end", format="text", key="1")
    reading = read_item("s", raw)
    assert reading is not None
    assert sum(map(len, reading.passages)) <= 2 * LONGEST_LINE
    assert reading.thread.digest != digest_of(Raw(origin="a.txt", content=raw.content + "s", format="text", key="1"))
