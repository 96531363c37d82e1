"""The index on disk: whole, checked, switched to at once, and only for the embedder that made it."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from tests.store.knowledge import HashEmbedder, cases, glossary, rules
from trainmedic.kb.errors import StoreError
from trainmedic.kb.glossary.terms import Concept, Glossary
from trainmedic.kb.store import index as store
from trainmedic.kb.store.index import Index, Manifest


def made(root: Path, version: str = "v1", embedder: HashEmbedder | None = None) -> Manifest:
    manifest = store.build(cases(version), rules(), glossary(), embedder or HashEmbedder(), root)
    store.switch(root, manifest.id)
    return manifest


def test_what_was_built_can_be_opened_and_holds_every_published_case(tmp_path: Path) -> None:
    manifest = made(tmp_path)
    opened = store.open_index(tmp_path, HashEmbedder())
    assert opened.manifest == manifest
    assert manifest.cases == 3
    assert manifest.chunks == len(opened.chunks) == opened.vectors.size == opened.lexical.size


def test_drafts_are_never_indexed(tmp_path: Path) -> None:
    made(tmp_path)
    assert not any("draft" in chunk.text for chunk in store.open_index(tmp_path, HashEmbedder()).chunks)


def test_the_same_knowledge_makes_the_same_files(tmp_path: Path) -> None:
    assert made(tmp_path / "a").files == made(tmp_path / "b").files


@pytest.mark.parametrize("name", ["chunks.json", "vectors.faiss", "impacts.npy", "terms.json"])
def test_a_tampered_file_is_refused_by_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / made(tmp_path).id / name
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    with pytest.raises(StoreError, match=name) as caught:
        store.open_index(tmp_path, HashEmbedder())
    assert caught.value.hint == store.REBUILD


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / made(tmp_path).id / "documents.npy").unlink()
    with pytest.raises(StoreError, match="missing"):
        store.verify(store.current(tmp_path))


def test_another_embedder_is_refused_and_both_are_named(tmp_path: Path) -> None:
    made(tmp_path)
    with pytest.raises(StoreError, match="hash, not with other"):
        store.open_index(tmp_path, HashEmbedder("other"))


def test_no_index_is_an_error_with_a_hint_and_a_status_without_one(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as caught:
        store.open_index(tmp_path, HashEmbedder())
    assert caught.value.hint
    assert store.status(tmp_path).current is None


@pytest.mark.parametrize("name", ["../elsewhere", ".hidden", ""])
def test_a_pointer_out_of_the_store_is_refused(tmp_path: Path, name: str) -> None:
    made(tmp_path)
    (tmp_path / store.CURRENT).write_text(name)
    with pytest.raises(StoreError):
        store.current(tmp_path)


def test_ensure_builds_once_and_again_when_pages_change(tmp_path: Path) -> None:
    embedder = HashEmbedder()
    first = store.ensure(tmp_path, cases(), rules(), glossary(), embedder)
    asked = embedder.asked
    assert store.ensure(tmp_path, cases(), rules(), glossary(), embedder).manifest == first.manifest
    assert embedder.asked == asked
    assert store.ensure(tmp_path, cases("v2"), rules(), glossary(), embedder).manifest.id != first.manifest.id


def test_ensure_builds_again_when_the_glossary_gains_a_wording(tmp_path: Path) -> None:
    more = Glossary({"oom": Concept(id="oom", kind="symptom", en=("out of memory", "oom"), zh=("显存不足",))})
    first = store.ensure(tmp_path, cases(), rules(), glossary(), HashEmbedder())
    assert store.ensure(tmp_path, cases(), rules(), more, HashEmbedder()).manifest.id != first.manifest.id


def test_ensure_repairs_a_damaged_index(tmp_path: Path) -> None:
    manifest = made(tmp_path)
    (tmp_path / manifest.id / "chunks.json").write_text("[]")
    assert store.ensure(tmp_path, cases(), rules(), glossary(), HashEmbedder()).manifest.id == manifest.id
    store.verify(store.current(tmp_path))


def test_switching_to_a_damaged_index_keeps_the_one_in_use(tmp_path: Path) -> None:
    old, new = made(tmp_path, "v1"), store.build(cases("v2"), rules(), glossary(), HashEmbedder(), tmp_path)
    (tmp_path / new.id / "chunks.json").write_text("[]")
    with pytest.raises(StoreError):
        store.switch(tmp_path, new.id)
    assert store.current(tmp_path).name == old.id


def test_a_reader_sees_the_old_index_or_the_new_one_and_never_an_error(tmp_path: Path) -> None:
    ids = [made(tmp_path, version).id for version in ("v1", "v2")]
    seen: set[str] = set()
    wrong: list[BaseException] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            try:
                opened: Index = store.open_index(tmp_path, HashEmbedder())
                seen.add(opened.manifest.id)
            except StoreError as error:
                wrong.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for turn in range(60):
        store.switch(tmp_path, ids[turn % 2])
    done.set()
    reader.join()
    assert wrong == []
    assert seen
    assert seen <= set(ids)


def test_old_indexes_are_kept_for_going_back_but_not_for_ever(tmp_path: Path) -> None:
    ids = []
    for number in range(5):
        manifest = store.build(cases(f"v{number}"), rules(), glossary(), HashEmbedder(), tmp_path)
        os.utime(tmp_path / manifest.id, (number, number))
        store.switch(tmp_path, manifest.id)
        ids.append(manifest.id)
    assert set(store.status(tmp_path).available) == set(ids[-store.KEPT :])


def test_another_user_of_the_machine_can_read_the_index(tmp_path: Path) -> None:
    manifest = made(tmp_path)
    assert stat.S_IMODE((tmp_path / manifest.id).stat().st_mode) & 0o055 == 0o055
    assert stat.S_IMODE((tmp_path / store.CURRENT).stat().st_mode) & 0o044 == 0o044


def test_a_folder_that_cannot_be_made_is_named_with_the_setting_to_change(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written") as caught:
        made(tmp_path / "file" / "index")
    assert caught.value.hint == "set TRAINMEDIC_DATA_DIR"
