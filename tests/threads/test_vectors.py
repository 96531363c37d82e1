"""Vectors of passages: all compared and by the inverted file, the same is found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from trainmedic.kb.errors import StoreError
from trainmedic.kb.threads.vectors import EXACT, FILE, INVERTED, Array, PassageVectors, ranked

DIMENSION = 16


@pytest.fixture(params=[None, 100])
def vectors(request: pytest.FixtureRequest, tmp_path: Path) -> PassageVectors:
    """All compared, or by the inverted file."""
    return PassageVectors(tmp_path, DIMENSION, exact=request.param or EXACT)


def cloud(count: int, seed: int = 7) -> Array:
    points = np.random.default_rng(seed).standard_normal((count, DIMENSION)).astype(np.float32)
    normalised: Array = points / np.linalg.norm(points, axis=1, keepdims=True)
    return normalised


def ids(count: int) -> list[str]:
    return [f"t#{n}" for n in range(count)]


def test_nothing_is_found_in_nothing(vectors: PassageVectors) -> None:
    assert (vectors.search(cloud(1)[0], 5), vectors.count()) == ((), 0)


def test_the_nearest_come_first_with_their_cosines_as_comparing_every_one_finds_them(vectors: PassageVectors) -> None:
    points = cloud(300)
    vectors.put(ids(300), points)
    vectors.optimise()
    for query in cloud(5, seed=9):
        cosines = points @ query
        expected = ranked(list(zip(ids(300), cosines.tolist(), strict=True)), 10)
        found = vectors.search(query, 10)
        assert [name for name, _ in found] == [name for name, _ in expected]
        assert np.allclose([c for _, c in found], [c for _, c in expected], atol=2e-3)


def test_equal_vectors_are_ordered_by_id(vectors: PassageVectors) -> None:
    point = cloud(1)
    vectors.put(["t#3", "t#1", "t#2"], np.repeat(point, 3, axis=0))
    assert [name for name, _ in vectors.search(point[0], 3)] == ["t#1", "t#2", "t#3"]


def test_writing_again_replaces_and_what_is_removed_is_not_found(vectors: PassageVectors) -> None:
    points = cloud(120)
    vectors.put(ids(120), points)
    vectors.optimise()
    vectors.put(["t#5"], points[6:7])
    vectors.remove(["t#6", "t#unknown"])
    assert vectors.count() == 119
    found = [name for name, _ in vectors.search(points[6], 3)]
    assert found[0] == "t#5"
    assert "t#6" not in found
    vectors.put(ids(120), points)
    vectors.put(ids(120), points)
    assert vectors.count() == 120


def test_the_inverted_file_is_trained_when_much_changed_and_survives_damage(tmp_path: Path) -> None:
    points = cloud(400)
    first = PassageVectors(tmp_path, DIMENSION, exact=100)
    first.put(ids(300), points[:300])
    first.optimise()
    trained = (tmp_path / INVERTED).stat().st_mtime_ns
    first.put(["t#300"], points[300:301])
    first.optimise()
    assert (tmp_path / INVERTED).stat().st_mtime_ns == trained
    assert PassageVectors(tmp_path, DIMENSION, exact=100).search(points[300], 1)[0][0] == "t#300"
    first.put(ids(400)[301:], points[301:])
    first.optimise()
    assert (tmp_path / INVERTED).stat().st_mtime_ns != trained
    (tmp_path / INVERTED).write_bytes(b"damaged")
    assert PassageVectors(tmp_path, DIMENSION, exact=100).search(points[17], 1)[0][0] == "t#17"


def test_a_second_process_sees_what_the_first_writes(tmp_path: Path) -> None:
    writer, reader = PassageVectors(tmp_path, DIMENSION), PassageVectors(tmp_path, DIMENSION)
    points = cloud(2)
    writer.put(["t#0"], points[:1])
    assert [name for name, _ in reader.search(points[0], 2)] == ["t#0"]
    writer.put(["t#1"], points[1:])
    writer.remove(["t#0"])
    assert [name for name, _ in reader.search(points[0], 2)] == ["t#1"]


def test_a_damaged_file_is_said(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"no database" * 100)
    with pytest.raises(StoreError, match="cannot be opened"):
        PassageVectors(tmp_path, DIMENSION)
