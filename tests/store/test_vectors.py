"""Vectors on disk, and those that are found among many."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.store.knowledge import HashEmbedder
from trainmedic.kb.errors import StoreError
from trainmedic.kb.store.vectors import COARSE_FROM, Vectors

TEXTS = ["loss is nan", "out of memory in zero3", "training hang", "nan loss after warmup", "reward is flat"]


def test_vectors_come_back_from_disk(tmp_path: Path) -> None:
    made = Vectors.of(HashEmbedder().vectors(TEXTS))
    made.save(tmp_path / "v")
    again = Vectors.load(tmp_path / "v", 64, len(TEXTS))
    assert (again.rows() == made.rows()).all()


def test_a_damaged_file_or_one_of_other_texts_is_refused(tmp_path: Path) -> None:
    Vectors.of(HashEmbedder().vectors(TEXTS)).save(tmp_path / "v")
    with pytest.raises(StoreError):
        Vectors.load(tmp_path / "v", 64, 0)
    with pytest.raises(StoreError):
        Vectors.load(tmp_path / "v", 32, len(TEXTS))
    (tmp_path / "v").write_bytes(b"not faiss")
    with pytest.raises(StoreError):
        Vectors.load(tmp_path / "v", 64, len(TEXTS))


def test_many_vectors_are_found_by_their_codes_as_if_all_were_compared(tmp_path: Path) -> None:
    centres = np.random.default_rng(0).normal(size=(200, 32)).astype(np.float32)
    rows = centres[np.arange(COARSE_FROM) % 200] + np.random.default_rng(1).normal(size=(COARSE_FROM, 32)) / 3
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    Vectors.of(rows).save(tmp_path / "vectors.faiss")
    found = Vectors.load(tmp_path / "vectors.faiss", 32, len(rows))
    compared = Vectors.of(rows[: COARSE_FROM - 1])
    missed = 0
    for row in rows[:50]:
        numbers, cosines = found.ranked(row, 40)
        exact, exact_cosines = compared.ranked(row, 40)
        missed += len(set(exact) - set(numbers))
        assert list(numbers[:10]) == list(exact[:10])
        np.testing.assert_allclose(cosines[:10], exact_cosines[:10], atol=1e-6)
    assert missed <= 10
    np.testing.assert_allclose(found.rows()[:5], rows[:5], atol=1e-3)
    among, _ = found.ranked(rows[0], 3, among=[7, 8, 9])
    assert set(among) == {7, 8, 9}
    assert len(found.ranked(rows[0], len(rows))[0]) == len(rows)
