"""The index on disk: whole, checked, switched to at once, and only for the embedder that made it."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from tests.store.knowledge import HashEmbedder, case, cases, glossary, rules
from trainmedic.kb.errors import StoreError
from trainmedic.kb.glossary.terms import Concept, Glossary
from trainmedic.kb.model.report import Text
from trainmedic.kb.pages.case import CaseSet
from trainmedic.kb.store import build as store
from trainmedic.kb.store import index as opening
from trainmedic.kb.store.index import Index, open_index
from trainmedic.kb.store.manifest import MANIFEST, REBUILD, Manifest, read_manifest, verify


def made(root: Path, version: str = "v1", embedder: HashEmbedder | None = None) -> Manifest:
    return store.build(cases(version), rules(), glossary(), embedder or HashEmbedder(), root, root / "none")


def ensure(root: Path, edition: CaseSet | None = None, embedder: HashEmbedder | None = None) -> Index:
    return store.ensure(edition or cases(), rules(), glossary(), embedder or HashEmbedder(), root, root / "none")


def test_what_was_built_can_be_opened_and_holds_every_published_case(tmp_path: Path) -> None:
    manifest = made(tmp_path)
    opened = open_index(tmp_path / manifest.id, HashEmbedder())
    assert opened.manifest == manifest
    assert manifest.cases == 3
    assert manifest.chunks == len(opened.chunks) == opened.vectors.size == opened.lexical.size


def test_drafts_are_never_indexed(tmp_path: Path) -> None:
    assert not any("draft" in chunk.text for chunk in ensure(tmp_path).chunks)


def test_the_same_knowledge_makes_the_same_files(tmp_path: Path) -> None:
    assert made(tmp_path / "a").files == made(tmp_path / "b").files


@pytest.mark.parametrize("name", ["chunks.json", "vectors.faiss", "impacts.npy", "terms.json"])
def test_a_tampered_or_missing_file_is_refused_by_name(tmp_path: Path, name: str) -> None:
    folder = tmp_path / made(tmp_path).id
    (folder / name).write_bytes((folder / name).read_bytes()[:-1] + b"!")
    with pytest.raises(StoreError, match=name) as caught:
        open_index(folder, HashEmbedder())
    assert caught.value.hint == REBUILD
    (folder / name).unlink()
    with pytest.raises(StoreError, match=f"{name} is missing"):
        verify(folder)


def test_another_embedder_is_refused_and_both_are_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="hash, not with other"):
        open_index(tmp_path / made(tmp_path).id, HashEmbedder("other"))


def test_no_index_is_an_error_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no index at") as caught:
        open_index(tmp_path / "unknown", HashEmbedder())
    assert caught.value.hint
    assert store.indexes(tmp_path / "unknown") == ()


def test_an_index_is_built_once_and_again_when_pages_change(tmp_path: Path) -> None:
    embedder = HashEmbedder()
    first = ensure(tmp_path, embedder=embedder)
    asked = embedder.asked
    assert ensure(tmp_path, embedder=embedder).manifest == first.manifest
    assert embedder.asked == asked
    second = ensure(tmp_path, cases("v2"), embedder)
    assert second.manifest.id != first.manifest.id
    assert embedder.asked == asked
    assert store.indexes(tmp_path) == (tmp_path / second.manifest.id,)


def test_it_is_built_again_when_the_glossary_gains_a_wording(tmp_path: Path) -> None:
    more = Glossary({"oom": Concept(id="oom", kind="symptom", en=("out of memory", "oom"), zh=("显存不足",))})
    second = store.ensure(cases(), rules(), more, HashEmbedder(), tmp_path, tmp_path / "none")
    assert second.manifest.id != ensure(tmp_path).manifest.id


def test_a_damaged_index_is_repaired(tmp_path: Path) -> None:
    manifest = made(tmp_path)
    (tmp_path / manifest.id / "chunks.json").write_text("[]")
    assert ensure(tmp_path).manifest == manifest
    verify(tmp_path / manifest.id)


def test_only_texts_that_are_new_are_embedded_when_pages_change_and_none_when_they_change_back(tmp_path: Path) -> None:
    embedder = HashEmbedder()
    first = ensure(tmp_path, embedder=embedder)
    asked = embedder.asked
    second = ensure(tmp_path, edited(), embedder)
    assert 0 < embedder.asked - asked < len(second.chunks) / 2
    assert second.manifest == ensure(tmp_path / "other", edited()).manifest
    asked = embedder.asked
    assert ensure(tmp_path, embedder=embedder).manifest == first.manifest
    assert embedder.asked == asked


def edited() -> CaseSet:
    """The cases with one edited, one removed and one added."""
    before = {case.id: case for case in cases().cases}
    changed = replace(before["kto-nan"], title=Text(en="loss nan, out of memory", zh="爆显存"))
    new = case("checkpoint-lost", ["the checkpoint is lost", "training hang in allreduce"])
    return CaseSet(cases=(changed, before["zero3-oom"], new), version="v2")


def test_vectors_of_another_embedder_are_not_reused(tmp_path: Path) -> None:
    made(tmp_path)
    other = HashEmbedder("other")
    assert ensure(tmp_path, embedder=other).chunks
    assert other.asked > 0


def test_another_user_of_the_machine_can_read_the_index(tmp_path: Path) -> None:
    manifest = made(tmp_path)
    assert stat.S_IMODE((tmp_path / manifest.id).stat().st_mode) & 0o055 == 0o055


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
    return store.at_once(edition or cases(), rules(), glossary(), embedder or HashEmbedder(), root, root / "none")


def test_words_are_searched_before_anything_is_embedded(tmp_path: Path, impatient: None) -> None:
    embedder = HashEmbedder()
    words = at_once(tmp_path, embedder=embedder)
    assert words is not None
    assert words.words_only
    assert embedder.asked == words.vectors.size == 0
    whole = ensure(tmp_path, embedder=embedder)
    assert (whole.passages, whole.concepts) == (words.passages, words.concepts)
    assert not whole.words_only
    assert whole.manifest == made(tmp_path / "b")


def test_words_that_are_open_are_searched_on_when_their_files_are_deleted(tmp_path: Path, impatient: None) -> None:
    words = at_once(tmp_path)
    assert words is not None
    whole = ensure(tmp_path, cases("v2"))
    assert store.indexes(tmp_path) == (tmp_path / whole.manifest.id,)
    numbers, _ = words.lexical.search({"allreduce": 1.0}, 3)
    assert numbers.tolist() == whole.lexical.search({"allreduce": 1.0}, 3)[0].tolist() != []


def test_a_whole_index_is_used_at_once(tmp_path: Path, impatient: None) -> None:
    built = made(tmp_path)
    found = at_once(tmp_path)
    assert found is not None
    assert (found.manifest.id, found.words_only) == (built.id, False)


def test_what_is_embedded_in_seconds_is_waited_for(tmp_path: Path, impatient: None) -> None:
    assert at_once(tmp_path) is not None
    made(tmp_path)
    assert at_once(tmp_path, cases("v2")) is None  # no new text
    changed = replace(edited(), version="v3")
    assert at_once(tmp_path, changed) is not None
    assert at_once(tmp_path, changed, HashEmbedder("other")) is not None


def test_of_words_without_vectors_only_the_last_are_kept(tmp_path: Path, impatient: None) -> None:
    whole = made(tmp_path)
    for version in ("v1", "v2"):
        words = at_once(tmp_path, replace(edited(), version=version))
    assert words is not None
    assert store.indexes(tmp_path) == (tmp_path / whole.id, tmp_path / words.manifest.id)


def test_damaged_words_are_made_again_and_never_embedded(tmp_path: Path, impatient: None) -> None:
    words = at_once(tmp_path)
    assert words is not None
    (tmp_path / words.manifest.id / "chunks.json").write_text("[]")
    with pytest.raises(StoreError, match=r"chunks\.json"):
        store.add_vectors(tmp_path, words.manifest.id, HashEmbedder(), tmp_path / "none")
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
    opened = store.ensure(cases(), rules(), glossary(), embedder, data, package)
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
    assert store.ensure(cases(), rules(), glossary(), embedder, data, package).chunks
    assert (embedder.asked > 0) == (name in ("vectors.faiss", "chunks.json"))  # the vectors of others are whole
    (message,) = caplog.messages
    assert message.startswith("updating the search index")
    assert f"{package / name} is not what its manifest says" in message
    store.ensure(cases(), rules(), glossary(), embedder, data, package)
    assert len(caplog.messages) == 1


def test_for_other_pages_than_the_packages_an_index_is_built_from_its_vectors(
    package: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    embedder, data = HashEmbedder(), tmp_path / "data"
    opened = store.ensure(cases("v2"), rules(), glossary(), embedder, data, package)
    assert opened.manifest.kb_version == "v2"
    assert embedder.asked == 0
    assert store.indexes(data) == (data / opened.manifest.id,)
    assert [f"{package} was made for other pages" in message for message in caplog.messages] == [True]


def test_an_index_of_older_code_is_not_used(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "code_version", lambda: "later")
    opened = store.ensure(cases(), rules(), glossary(), HashEmbedder(), tmp_path / "data", package)
    assert opened.manifest.id != read_manifest(package).id


def test_another_embedder_than_the_packages_builds_its_own_index(package: Path, tmp_path: Path) -> None:
    other = HashEmbedder("other")
    opened = store.ensure(cases(), rules(), glossary(), other, tmp_path / "data", package)
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
