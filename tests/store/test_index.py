"""The index on disk: whole, checked, switched to at once, and only for the embedder that made it."""

from __future__ import annotations

import os
import stat
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.store.knowledge import HashEmbedder, case, cases, glossary, rules
from trainmedic.kb.errors import StoreError
from trainmedic.kb.glossary.terms import Concept, Glossary
from trainmedic.kb.model.report import Text
from trainmedic.kb.pages.case import CaseSet
from trainmedic.kb.store import index as store
from trainmedic.kb.store.half import HALVES, read_half
from trainmedic.kb.store.index import Index
from trainmedic.kb.store.manifest import MANIFEST, REBUILD, Manifest, read_manifest, verify


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
    assert caught.value.hint == REBUILD


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / made(tmp_path).id / "documents.npy").unlink()
    with pytest.raises(StoreError, match="missing"):
        verify(store.current(tmp_path))


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
    verify(store.current(tmp_path))


def test_only_texts_that_are_new_are_embedded_when_pages_change(tmp_path: Path) -> None:
    embedder = HashEmbedder()
    first = store.ensure(tmp_path, cases(), rules(), glossary(), embedder)
    asked = embedder.asked
    new = case("checkpoint-lost", ["the checkpoint is lost"])
    more = CaseSet(cases=(*cases().cases, new), version="v2")
    second = store.ensure(tmp_path, more, rules(), glossary(), embedder)
    added = [chunk for chunk in second.chunks if chunk.cases == (new.id,)]
    assert 0 < embedder.asked - asked <= len(added)
    fresh = store.ensure(tmp_path / "other", more, rules(), glossary(), HashEmbedder())
    assert second.manifest == fresh.manifest
    assert second.manifest.id != first.manifest.id


def edited() -> CaseSet:
    """The cases with one edited, one removed and one added."""
    before = {case.id: case for case in cases().cases}
    changed = replace(before["kto-nan"], title=Text(en="loss nan, out of memory", zh="爆显存"))
    new = case("checkpoint-lost", ["the checkpoint is lost", "training hang in allreduce"])
    return CaseSet(cases=(changed, before["zero3-oom"], new), version="v2")


class CountingGlossary(Glossary):
    """Counts the texts in which concepts are looked for."""

    read = 0

    def ids(self, text: str) -> tuple[str, ...]:
        self.read += 1
        return super().ids(text)


def test_an_index_made_from_an_earlier_one_has_the_files_of_one_made_from_nothing(tmp_path: Path) -> None:
    made(tmp_path / "a")
    counting = CountingGlossary(glossary().concepts)
    after = store.build(edited(), rules(), counting, HashEmbedder(), tmp_path / "a")
    alone = CountingGlossary(glossary().concepts)
    assert after.files == store.build(edited(), rules(), alone, HashEmbedder(), tmp_path / "b").files
    assert 0 < counting.read < alone.read


@pytest.mark.parametrize("name", ["counts.npy", "concepts.json", "terms.json"])
def test_a_damaged_index_is_not_built_upon(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a" / made(tmp_path / "a").id / name
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    after = store.build(edited(), rules(), glossary(), HashEmbedder(), tmp_path / "a")
    assert after.files == store.build(edited(), rules(), glossary(), HashEmbedder(), tmp_path / "b").files


def test_only_the_same_code_and_the_same_glossary_build_upon_an_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path)
    wider = CountingGlossary(
        {**glossary().concepts, "checkpoint": Concept(id="checkpoint", kind="concept", en=("checkpoint",), zh=())}
    )
    after = store.build(edited(), rules(), wider, HashEmbedder(), tmp_path)
    assert after.files == store.build(edited(), rules(), wider, HashEmbedder(), tmp_path / "b").files
    monkeypatch.setattr(store, "code_version", lambda: "later")
    counting = CountingGlossary(glossary().concepts)
    store.build(cases(), rules(), counting, HashEmbedder(), tmp_path)
    alone = CountingGlossary(glossary().concepts)
    store.build(cases(), rules(), alone, HashEmbedder(), tmp_path / "c")
    assert counting.read == alone.read


def test_vectors_of_another_embedder_are_not_reused(tmp_path: Path) -> None:
    made(tmp_path)
    other = HashEmbedder("other")
    assert store.ensure(tmp_path, cases(), rules(), glossary(), other).chunks
    assert other.asked > 0


def test_vectors_of_a_damaged_index_are_not_reused(tmp_path: Path) -> None:
    path = tmp_path / made(tmp_path).id / "vectors.faiss"
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    embedder = HashEmbedder()
    store.build(cases("v2"), rules(), glossary(), embedder, tmp_path)
    assert embedder.asked > 0


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


# --- words before vectors -------------------------------------------------------------------------------------------


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "FEW", 0)


def at_once(root: Path, edition: CaseSet | None = None, embedder: HashEmbedder | None = None) -> Index | None:
    return store.at_once(root, edition or cases(), rules(), glossary(), embedder or HashEmbedder(), root / "none")


def test_words_are_searched_before_anything_is_embedded(tmp_path: Path, impatient: None) -> None:
    embedder = HashEmbedder()
    words = at_once(tmp_path, embedder=embedder)
    assert words is not None
    assert words.words_only
    assert embedder.asked == words.vectors.size == 0
    assert store.status(tmp_path).available == ()
    whole = store.ensure(tmp_path, cases(), rules(), glossary(), embedder)
    assert (whole.passages, whole.concepts) == (words.passages, words.concepts)
    assert not whole.words_only
    assert whole.without_vectors().words_only
    numbers, _ = words.lexical.search({"allreduce": 1.0}, 3)  # its files may be gone by now
    assert numbers.tolist() == whole.lexical.search({"allreduce": 1.0}, 3)[0].tolist() != []


def test_a_whole_index_is_used_at_once(tmp_path: Path, impatient: None) -> None:
    built = made(tmp_path)
    found = at_once(tmp_path)
    assert found is not None
    assert (found.manifest.id, found.words_only) == (built.id, False)


def test_what_is_embedded_in_seconds_is_waited_for(tmp_path: Path, impatient: None) -> None:
    assert at_once(tmp_path) is not None
    made(tmp_path)
    assert at_once(tmp_path, CaseSet(cases=cases().cases, version="v2")) is None  # no new text
    changed = replace(edited(), version="v3")
    assert at_once(tmp_path, changed) is not None
    assert at_once(tmp_path, changed, HashEmbedder("other")) is not None


def test_the_words_of_a_start_are_those_of_the_build_after_it(tmp_path: Path, impatient: None) -> None:
    words = at_once(tmp_path)
    assert words is not None
    manifest = store.add_vectors(tmp_path, read_half(tmp_path, words.manifest.id), HashEmbedder())
    assert manifest.files == made(tmp_path / "b").files
    with pytest.raises(StoreError, match="no index at"):
        read_half(tmp_path, "unknown")


def test_damaged_words_are_made_again_and_never_embedded(tmp_path: Path, impatient: None) -> None:
    words = at_once(tmp_path)
    assert words is not None
    path = tmp_path / HALVES / words.manifest.id / "chunks.json"
    path.write_text("[]")
    with pytest.raises(StoreError, match=r"chunks\.json"):
        store.add_vectors(tmp_path, read_half(tmp_path, words.manifest.id), HashEmbedder())
    again = at_once(tmp_path)
    assert again is not None
    assert again.passages == words.passages


# --- the index that is part of the package ----------------------------------------------------------------------------


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The folder of a package's own index of `cases`."""
    store.prebuild(cases(), rules(), glossary(), HashEmbedder(), tmp_path / "package")
    return tmp_path / "package"


def test_a_new_data_folder_needs_no_embedding_and_no_disk_space_if_the_package_has_the_index(
    package: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    embedder, data = HashEmbedder(), tmp_path / "data"
    opened = store.ensure(data, cases(), rules(), glossary(), embedder, package)
    assert embedder.asked == 0
    assert opened.manifest == read_manifest(package)
    assert opened.vectors.size == len(opened.chunks)
    assert opened.concepts["kto-nan"] == {"nan-loss"}
    assert opened.titles["zero3-oom"] == {"oom"}
    assert not data.exists()
    assert caplog.messages == []


@pytest.mark.parametrize("name", ["vectors.faiss", "chunks.json", "concepts.json", "pages/impacts.npy"])
def test_a_corrupted_file_in_the_package_is_named_and_another_index_is_built(
    package: Path, tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    (package / name).write_bytes((package / name).read_bytes()[:-1] + b"!")
    embedder, data = HashEmbedder(), tmp_path / "data"
    assert store.ensure(data, cases(), rules(), glossary(), embedder, package).chunks
    assert (embedder.asked > 0) == (name in ("vectors.faiss", "chunks.json"))  # the vectors of others are whole
    (message,) = caplog.messages
    assert message.startswith("updating the search index")
    assert f"{package / name} is not what its manifest says" in message
    store.ensure(data, cases(), rules(), glossary(), embedder, package)
    assert len(caplog.messages) == 1


def test_for_other_pages_than_the_packages_an_index_is_built_from_its_vectors(
    package: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    embedder, data = HashEmbedder(), tmp_path / "data"
    opened = store.ensure(data, cases("v2"), rules(), glossary(), embedder, package)
    assert opened.manifest.kb_version == "v2"
    assert embedder.asked == 0
    assert store.current(data).name == opened.manifest.id
    assert [f"{package} was made for other pages" in message for message in caplog.messages] == [True]


def test_an_index_of_older_code_is_not_used(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "code_version", lambda: "later")
    opened = store.ensure(tmp_path / "data", cases(), rules(), glossary(), HashEmbedder(), package)
    assert opened.manifest.id != read_manifest(package).id


def test_another_embedder_than_the_packages_builds_its_own_index(package: Path, tmp_path: Path) -> None:
    other = HashEmbedder("other")
    opened = store.ensure(tmp_path / "data", cases(), rules(), glossary(), other, package)
    assert opened.manifest.embedder == other.identity
    assert other.asked > 0


def test_the_packages_index_is_made_again_only_if_it_does_not_fit(package: Path) -> None:
    embedder = HashEmbedder()
    before = (package / MANIFEST).stat()
    store.prebuild(cases(), rules(), glossary(), embedder, package)
    assert (package / MANIFEST).stat() == before
    assert store.prebuild(cases("v2"), rules(), glossary(), embedder, package).kb_version == "v2"
    assert verify(package).kb_version == "v2"
    assert embedder.asked == 0
    assert [path.name for path in package.parent.iterdir()] == [package.name]


def test_the_status_names_the_packages_index(package: Path, tmp_path: Path) -> None:
    status = store.status(tmp_path / "data", package)
    assert (status.current, status.prebuilt) == (None, read_manifest(package).id)
    assert store.status(tmp_path / "data", tmp_path / "none").prebuilt is None
