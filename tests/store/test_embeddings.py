"""Vectors are stored as they are made, and found again by their text, also after a kill."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.store.knowledge import HashEmbedder, case, glossary, rules
from trainmedic.kb.errors import StoreError
from trainmedic.kb.pages.case import CaseSet
from trainmedic.kb.store import build as store
from trainmedic.kb.store import embeddings as module
from trainmedic.kb.store.embedder import Array, Embedder
from trainmedic.kb.store.embeddings import FILE, EmbeddingCache, Progress, no_progress
from trainmedic.kb.store.index import open_index
from trainmedic.kb.store.manifest import verify

CORPUS = 120
SLOW_BUILD = """
import sys
from pathlib import Path
from tests.store.test_embeddings import Slow, corpus
from tests.store.knowledge import glossary, rules
from trainmedic.kb.store import build, embeddings
embeddings.BATCH = 8
root = Path(sys.argv[1])
build.build(corpus(), rules(), glossary(), Slow(), root, root / "none")
"""


class Slow(HashEmbedder):
    """Takes a hundredth of a second for a text and writes the size of each batch to standard output."""

    def vectors(self, texts: Sequence[str]) -> Array:
        time.sleep(0.01 * len(texts))
        sys.stdout.write(f"{len(texts)}\n")
        sys.stdout.flush()
        return super().vectors(texts)


def corpus() -> CaseSet:
    symptoms = [f"loss rises at step {number} of stage {number * 7}" for number in range(CORPUS)]
    return CaseSet(cases=tuple(case(f"case-{n}", [text]) for n, text in enumerate(symptoms)), version="corpus")


def embedded(folder: Path, texts: Sequence[str], embedder: Embedder, progress: Progress = no_progress) -> Array:
    cache = EmbeddingCache(folder, embedder.identity)
    return module.embed(texts, cache.known(texts), embedder, cache, progress)


def test_texts_are_embedded_once_whatever_process_asks(tmp_path: Path) -> None:
    first, second = HashEmbedder(), HashEmbedder()
    rows = embedded(tmp_path, ["a", "b"], first)
    again = embedded(tmp_path, ["b", "c", "a"], second)
    assert (first.asked, second.asked) == (2, 1)
    assert np.array_equal(rows, again[[2, 0]])


def test_progress_counts_only_what_has_to_be_embedded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 2)
    embedded(tmp_path, ["a"], HashEmbedder())
    reports: list[tuple[int, int]] = []
    embedded(tmp_path, list("abcdefa"), HashEmbedder(), lambda done, total: reports.append((done, total)))
    assert reports == [(0, 5), (2, 5), (4, 5), (5, 5)]


def test_another_embedder_does_not_see_them(tmp_path: Path) -> None:
    embedded(tmp_path, ["a"], HashEmbedder())
    other = HashEmbedder("other")
    embedded(tmp_path, ["a"], other)
    assert other.asked == 1


@pytest.mark.parametrize("content", [b"no database" * 100, b"SQLite format 3\0" + b"cut" * 400])
def test_a_damaged_file_is_made_again(tmp_path: Path, content: bytes) -> None:
    embedded(tmp_path, ["a"], HashEmbedder())
    (tmp_path / FILE).write_bytes(content)
    embedder = HashEmbedder()
    for _ in range(2):
        embedded(tmp_path, ["a"], embedder)
    assert embedder.asked == 1


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="none/embeddings"):
        embedded(tmp_path / "none", ["a"], HashEmbedder())


def test_vectors_that_no_page_needs_are_deleted_when_they_are_the_greater_part(tmp_path: Path) -> None:
    embedder = HashEmbedder()
    cache = EmbeddingCache(tmp_path, embedder.identity)
    embedded(tmp_path, ["a", "b", "c", "d"], embedder)
    cache.trim(["a", "b"])
    assert len(cache.known("abcd")) == 4
    cache.trim(["a"])
    assert list(cache.known("abcd")) == ["a"]


@pytest.mark.slow
def test_a_build_killed_again_and_again_makes_the_same_index_and_embeds_little_twice(tmp_path: Path) -> None:
    whole = store.build(corpus(), rules(), glossary(), HashEmbedder(), tmp_path / "whole", tmp_path / "none")
    chance, root, embedded, kills = random.Random(7), tmp_path / "killed", 0, 0
    command = [sys.executable, "-c", SLOW_BUILD, str(root)]
    while kills < 3:
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
    (words,) = store.indexes(root)
    assert open_index(words, HashEmbedder()).words_only
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    embedded += sum(map(int, done.stdout.split()))
    assert verify(root / whole.id) == whole
    assert len(list(root.glob(f"{store.BUILDING}*"))) == 0
    texts = len({chunk.embedded for chunk in open_index(root / whole.id, HashEmbedder()).chunks})
    assert texts <= embedded <= texts + kills * 8
