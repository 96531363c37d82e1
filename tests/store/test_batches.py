"""Vectors on their way into an index: stored as they are made, found again after a kill."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.store.knowledge import HashEmbedder, case, cases, glossary, rules
from trainmedic.kb.pages.case import CaseSet
from trainmedic.kb.store import batches as module
from trainmedic.kb.store import index as store
from trainmedic.kb.store.batches import VectorBatches
from trainmedic.kb.store.manifest import verify

CORPUS = 120
SLOW_BUILD = """
import sys
from pathlib import Path
from tests.store.test_batches import Slow, corpus
from tests.store.knowledge import glossary, rules
from trainmedic.kb.store import batches, index
batches.BATCH = 8
root = Path(sys.argv[1])
manifest = index.build(corpus(), rules(), glossary(), Slow(), root, root / "none")
index.switch(root, manifest.id)
"""


class Slow(HashEmbedder):
    """Takes a hundredth of a second for a text and writes the size of each batch to standard output."""

    def vectors(self, texts: Sequence[str]) -> module.Array:
        time.sleep(0.01 * len(texts))
        sys.stdout.write(f"{len(texts)}\n")
        sys.stdout.flush()
        return super().vectors(texts)


def corpus() -> CaseSet:
    symptoms = [f"loss rises at step {number} of stage {number * 7}" for number in range(CORPUS)]
    return CaseSet(cases=tuple(case(f"case-{n}", [text]) for n, text in enumerate(symptoms)), version="corpus")


def test_texts_are_embedded_once_whatever_process_asks(tmp_path: Path) -> None:
    first, second = HashEmbedder(), HashEmbedder()
    rows = VectorBatches(tmp_path, first).embed(["a", "b"])
    again = VectorBatches(tmp_path, second).embed(["b", "c", "a"])
    assert (first.asked, second.asked) == (2, 1)
    assert np.array_equal(rows["a"], again["a"])
    assert list(sorted(again)) == ["a", "b", "c"]


def test_progress_counts_only_what_has_to_be_embedded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 2)
    VectorBatches(tmp_path, HashEmbedder()).embed(["a"])
    reports: list[tuple[int, int]] = []
    VectorBatches(tmp_path, HashEmbedder()).embed(list("abcdef"), lambda done, total: reports.append((done, total)))
    assert reports == [(0, 5), (2, 5), (4, 5), (5, 5)]


def test_another_embedder_does_not_see_them(tmp_path: Path) -> None:
    VectorBatches(tmp_path, HashEmbedder()).embed(["a"])
    other = HashEmbedder("other")
    VectorBatches(tmp_path, other).embed(["a"])
    assert other.asked == 1


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut", b"no archive at all"])
def test_a_damaged_batch_is_embedded_again(tmp_path: Path, content: bytes) -> None:
    VectorBatches(tmp_path, HashEmbedder()).embed(["a"])
    (path,) = tmp_path.rglob("*.npz")
    path.write_bytes(content)
    embedder = HashEmbedder()
    VectorBatches(tmp_path, embedder).embed(["a"])
    assert embedder.asked == 1


def test_a_finished_build_leaves_no_batches(tmp_path: Path) -> None:
    store.build(cases(), rules(), glossary(), HashEmbedder(), tmp_path, tmp_path / "none")
    assert not list(tmp_path.rglob("*.npz"))


@pytest.mark.slow
def test_a_build_killed_ten_times_makes_the_same_index_and_embeds_little_twice(tmp_path: Path) -> None:
    whole = store.build(corpus(), rules(), glossary(), HashEmbedder(), tmp_path / "whole", tmp_path / "none")
    chance, root, embedded, kills = random.Random(7), tmp_path / "killed", 0, 0
    command = [sys.executable, "-c", SLOW_BUILD, str(root)]
    while kills < 10:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        batches = 0
        for line in process.stdout:
            embedded, batches = embedded + int(line), batches + 1
            if batches > chance.randrange(3):
                break
        process.kill()
        process.wait()
        process.stdout.close()
        kills += 1
    assert store.status(root).available == ()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    embedded += sum(map(int, done.stdout.split()))
    assert verify(store.current(root)) == whole
    assert len(list(root.glob(f"{store.BUILDING}*"))) == 0
    texts = len({chunk.embedded for chunk in store.open_index(root, HashEmbedder()).chunks})
    assert texts <= embedded <= texts + kills * 8
