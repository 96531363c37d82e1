"""Threads on disk: found by words and by meaning, replaced and forgotten whole, safe against being killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from trainmedic.kb.errors import StoreError
from trainmedic.kb.serialization import to_json
from trainmedic.kb.threads.store import Array, Entry, ThreadStore
from trainmedic.kb.threads.thread import Quote, Thread, from_text

DIMENSION = 4


def thread(key: str, title: str = "loss is nan", digest: str = "1") -> Thread:
    return Thread(
        source="test",
        key=key,
        url=f"https://example.org/{key}",
        title=title,
        language="en",
        digest=digest,
        symptom=(Quote(text=title, role="reporter"),),
        resolution=(Quote(text="Use bf16.", role="maintainer", message=2),),
        resolved_by="maintainer",
        versions={"trl": "0.19.0"},
        mechanisms={"half-precision-overflow": 0.5},
    )


def entry(key: str, text: str, direction: int = 0, **fields: str) -> Entry:
    vectors = np.zeros((1, DIMENSION), np.float32)
    vectors[0, direction] = 1.0
    return Entry(thread=thread(key, **fields), passages=(text,), vectors=vectors)


@pytest.fixture
def store(tmp_path: Path) -> ThreadStore:
    return ThreadStore(tmp_path, "encoder 1", DIMENSION)


def axis(direction: int) -> Array:
    vector: Array = np.eye(DIMENSION, dtype=np.float32)[direction]
    return vector


def test_a_thread_comes_back_as_it_was_stored(store: ThreadStore) -> None:
    store.put([entry("a", "loss is nan")])
    assert store.get(["test:a", "test:unknown"]) == (thread("a"),)
    assert from_text(to_json(thread("a"))) == thread("a")


def test_words_find_the_thread_that_has_most_and_rarest_of_them(store: ThreadStore) -> None:
    store.put([entry("a", "the loss is nan with fp16"), entry("b", "the loss is flat"), entry("c", "loss loss")])
    found = store.by_words({"nan": 1.0, "fp16": 1.0, "loss": 1.0}, 10)
    assert found[0][0] == "test:a"
    assert store.by_words({"absent": 1.0}, 10) == ()
    assert store.by_words({}, 10) == ()


def test_chinese_and_names_with_marks_are_found(store: ThreadStore) -> None:
    store.put([entry("a", "显存不足 per_device_train_batch_size flash-attn"), entry("b", "训练正常")])
    for term in ("显存", "per_device_train_batch_size", "flash-attn"):
        assert [name for name, _ in store.by_words({term: 1.0}, 10)] == ["test:a"], term


@pytest.mark.parametrize("term", ['"', "a OR b", "x*", "NEAR(", "(", ""])
def test_no_term_is_read_as_a_query(store: ThreadStore, term: str) -> None:
    store.put([entry("a", "loss is nan")])
    assert store.by_words({term: 1.0}, 10) == ()


def test_a_thread_put_again_replaces_the_old_one(store: ThreadStore) -> None:
    store.put([entry("a", "loss is nan", 0)])
    store.put([entry("a", "saving fails", 1, title="saving fails", digest="2")])
    assert store.count() == 1
    assert store.by_words({"nan": 1.0}, 10) == ()
    assert store.digests("test") == {"a": "2"}
    assert [score for _, score in store.by_vector(axis(0), 1)] == [0.0]


def test_a_forgotten_thread_is_found_no_more(store: ThreadStore) -> None:
    store.put([entry("a", "loss is nan"), entry("b", "loss is nan")])
    store.remove(["test:a", "test:unknown"])
    assert [name for name, _ in store.by_words({"nan": 1.0}, 10)] == ["test:b"]
    assert [name for name, _ in store.by_vector(axis(0), 10)] == ["test:b"]


def test_a_reader_sees_what_another_process_has_written(tmp_path: Path) -> None:
    reader, writer = (ThreadStore(tmp_path, "encoder 1", DIMENSION) for _ in range(2))
    assert reader.by_vector(axis(0), 10) == ()
    writer.put([entry("a", "loss is nan")])
    assert [name for name, _ in reader.by_vector(axis(0), 10)] == ["test:a"]


def test_vectors_of_another_encoder_and_a_file_that_is_no_database_are_refused(tmp_path: Path) -> None:
    ThreadStore(tmp_path, "encoder 1", DIMENSION)
    with pytest.raises(StoreError, match="another embedder"):
        ThreadStore(tmp_path, "encoder 2", DIMENSION)
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "threads.sqlite").write_text("not a database, but long enough to be read as one" * 40)
    with pytest.raises(StoreError, match="cannot be opened"):
        ThreadStore(tmp_path / "none", "encoder 1", DIMENSION)


KILLED = """
import sys
from pathlib import Path
from tests.threads.test_store import DIMENSION, entry
from trainmedic.kb.threads.store import ThreadStore
store = ThreadStore(Path(sys.argv[1]), "encoder 1", DIMENSION)
for number in range(10_000):
    store.put([entry(f"{number}-{part}", f"loss {number}") for part in range(3)])
    print(number, flush=True)
"""


def test_a_killed_writer_loses_nothing_it_acknowledged_and_leaves_no_half(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        acknowledged = [int(process.stdout.readline()) for _ in range(5)]
        os.kill(process.pid, signal.SIGKILL)
        acknowledged += [int(line) for line in process.stdout.read().split()]
    store = ThreadStore(tmp_path, "encoder 1", DIMENSION)
    stored = {key.partition("-")[0] for key in store.digests("test")}
    assert {str(number) for number in acknowledged} <= stored
    assert store.count() == 3 * len(stored)
    store.put([entry("after", "loss is nan")])
    assert [name for name, _ in store.by_words({"nan": 1.0}, 10)] == ["test:after"]
