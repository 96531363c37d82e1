"""Our vector store keeps LangChain's contract: the same answers as its own in-memory store."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from tests.store.knowledge import HashEmbedder
from trainmedic.kb.errors import StoreError
from trainmedic.kb.store.document_vectors import DocumentVectors
from trainmedic.kb.store.vectors import COARSE_FROM, Vectors

TEXTS = ["loss is nan", "out of memory in zero3", "training hang", "nan loss after warmup", "reward is flat"]
DATA: list[dict[str, Any]] = [{"n": n, "even": n % 2 == 0} for n in range(len(TEXTS))]
IDS = [f"id-{n}" for n in range(len(TEXTS))]


def embedder() -> Embeddings:
    return cast(Embeddings, HashEmbedder())


@pytest.fixture(params=[DocumentVectors, InMemoryVectorStore])
def filled(request: pytest.FixtureRequest) -> VectorStore:
    made = request.param.from_texts(TEXTS, embedder(), DATA, ids=IDS)
    assert isinstance(made, VectorStore)
    return made


def test_the_nearest_text_comes_first(filled: VectorStore) -> None:
    found = filled.similarity_search("nan loss after warmup", k=2)
    assert found[0].page_content == "nan loss after warmup"
    assert found[0].metadata == {"n": 3, "even": False}
    assert found[0].id == "id-3"


def test_a_text_is_as_near_to_itself_as_can_be(filled: VectorStore) -> None:
    (_, score), *_ = filled.similarity_search_with_score("training hang", k=1)
    assert score == pytest.approx(1.0, abs=1e-5)


def test_a_filter_still_fills_k(filled: VectorStore) -> None:
    def even(document: Document) -> bool:
        return bool(document.metadata["even"])

    assert {d.metadata["n"] for d in filled.similarity_search("nan", k=3, filter=even)} == {0, 2, 4}


def test_more_than_there_is_gives_all_there_is(filled: VectorStore) -> None:
    assert len(filled.similarity_search("nan", k=50)) == len(TEXTS)


def test_ids_are_found_and_unknown_ones_left_out(filled: VectorStore) -> None:
    assert [d.page_content for d in filled.get_by_ids(["id-2", "no-such"])] == ["training hang"]


def test_a_deleted_text_is_gone(filled: VectorStore) -> None:
    filled.delete(["id-3"])
    assert "nan loss after warmup" not in [d.page_content for d in filled.similarity_search("nan loss", k=9)]
    assert len(filled.similarity_search("nan loss", k=9)) == len(TEXTS) - 1


def test_a_text_added_again_under_its_id_replaces_the_old_one(filled: VectorStore) -> None:
    filled.add_texts(["a new one"], ids=["id-0"])
    assert [d.page_content for d in filled.get_by_ids(["id-0"])] == ["a new one"]
    assert len(filled.similarity_search("nan", k=9)) == len(TEXTS)


def test_texts_without_ids_get_ids_of_their_own(filled: VectorStore) -> None:
    filled.delete(["id-0"])
    names = filled.add_texts(["one", "two"]) + filled.add_texts(["three"])
    assert len(set(names)) == 3
    assert len(filled.similarity_search("nan", k=20)) == len(TEXTS) + 2


def test_both_stores_score_alike() -> None:
    ours = DocumentVectors.from_texts(TEXTS, embedder(), ids=IDS)
    theirs = InMemoryVectorStore.from_texts(TEXTS, embedder(), ids=IDS)
    for question in ("nan loss", "zero3 memory", "flat reward"):
        mine = ours.similarity_search_with_score(question, k=5)
        other = theirs.similarity_search_with_score(question, k=5)
        assert {d.id: pytest.approx(s, abs=1e-5) for d, s in other} == {d.id: s for d, s in mine}


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


def test_documents_that_do_not_fit_their_vectors_are_refused() -> None:
    with pytest.raises(StoreError):
        DocumentVectors(embedder(), Vectors.of(HashEmbedder().vectors(TEXTS)), [])


def test_half_precision_keeps_the_order() -> None:
    documents = [Document(page_content=text, id=name) for text, name in zip(TEXTS, IDS, strict=True)]
    full = DocumentVectors.from_texts(TEXTS, embedder(), ids=IDS)
    half = DocumentVectors(embedder(), Vectors.of(HashEmbedder().vectors(TEXTS)), documents)
    assert [d.id for d in half.similarity_search("nan loss", 5)] == [
        d.id for d in full.similarity_search("nan loss", 5)
    ]


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
