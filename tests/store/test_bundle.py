"""A version as one file: whole or refused, and only for the embedder and the format that it was made with."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.store.knowledge import HashEmbedder, cases, glossary, rules
from trainmedic.kb.errors import StoreError
from trainmedic.kb.store import index as store
from trainmedic.kb.store.bundle import BUNDLE, export, import_
from trainmedic.kb.store.manifest import FORMAT, Manifest, verify

EMBEDDER = HashEmbedder()


@pytest.fixture
def made(tmp_path: Path) -> Manifest:
    root = tmp_path / "here"
    return store.build(
        cases(), rules(), glossary(), EMBEDDER, root, tmp_path / "none", sources=lambda: {"kb/cases/a.md": b"a page"}
    )


@pytest.fixture
def bundle(made: Manifest, tmp_path: Path) -> Path:
    export(tmp_path / "here" / made.id, tmp_path / "index.zip")
    return tmp_path / "index.zip"


def rewritten(bundle: Path, change: Callable[[dict[str, bytes]], None]) -> None:
    with zipfile.ZipFile(bundle) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(bundle, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def in_head(**changes: object) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        members[BUNDLE] = json.dumps({**json.loads(members[BUNDLE]), **changes}).encode()

    return change


def test_an_exported_version_is_the_same_where_it_is_imported(made: Manifest, bundle: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    assert import_(bundle, there, EMBEDDER.identity) == made
    assert verify(there / made.id) == made
    embedder = HashEmbedder()
    assert store.ensure(there, cases(), rules(), glossary(), embedder, tmp_path / "none").manifest == made
    assert embedder.asked == 0


def test_the_same_version_makes_the_same_file_and_a_second_import_changes_nothing(
    made: Manifest, bundle: Path, tmp_path: Path
) -> None:
    export(tmp_path / "here" / made.id, tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == bundle.read_bytes()
    for _ in range(2):
        import_(bundle, tmp_path / "there", EMBEDDER.identity)
    assert store.status(tmp_path / "there").available == (made.id,)


def test_a_damaged_version_is_not_exported(made: Manifest, tmp_path: Path) -> None:
    (tmp_path / "here" / made.id / "chunks.json").write_text("[]")
    with pytest.raises(StoreError, match=r"chunks\.json"):
        export(tmp_path / "here" / made.id, tmp_path / "index.zip")
    assert not (tmp_path / "index.zip").exists()


def test_a_file_that_cannot_be_written_is_named(made: Manifest, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be written"):
        export(tmp_path / "here" / made.id, tmp_path / "no" / "index.zip")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda members: members.update({"chunks.json": b"[]"}), "damaged: chunks.json has another checksum"),
        (lambda members: members.update({"manifest.json": b"{}"}), "damaged: manifest.json has another checksum"),
        (lambda members: members.pop("vectors.faiss"), "damaged: vectors.faiss is missing"),
        (lambda members: members.update({"extra": b""}), "damaged: extra is unknown"),
        (lambda members: members.update({"../evil": b""}), "'../evil'"),
        (lambda members: members.update({"/etc/evil": b""}), "'/etc/evil'"),
        (lambda members: members.pop(BUNDLE), f"no index bundle: it has no {BUNDLE}"),
        (lambda members: members.update({BUNDLE: b"{"}), f"damaged: {BUNDLE} cannot be read"),
        (lambda members: members.update({BUNDLE: b"[]"}), f"damaged: {BUNDLE} cannot be read"),
        (in_head(format=FORMAT + 1), "has the format 1.8, this release reads 1.7"),
        (in_head(bundle=2), "has the format 2.7"),
    ],
)
def test_a_damaged_or_foreign_bundle_is_refused_and_leaves_nothing(
    bundle: Path, tmp_path: Path, change: Callable[[dict[str, bytes]], None], message: str
) -> None:
    rewritten(bundle, change)
    with pytest.raises(StoreError) as caught:
        import_(bundle, tmp_path / "there", EMBEDDER.identity)
    assert message in caught.value.message
    assert store.status(tmp_path / "there").available == ()
    assert not list((tmp_path / "there").glob(f"{store.BUILDING}*"))
    assert not (tmp_path / "evil").exists()


def test_a_bundle_of_another_embedder_names_both(bundle: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"the embedder hash \(hash-1\), this installation uses other") as caught:
        import_(bundle, tmp_path / "there", HashEmbedder("other").identity)
    assert "TRAINMEDIC_EMBEDDER" in (caught.value.hint or "")


@pytest.mark.parametrize("cut", [10, 1000, -30])
def test_a_bundle_that_was_cut_off_is_refused(bundle: Path, tmp_path: Path, cut: int) -> None:
    bundle.write_bytes(bundle.read_bytes()[:cut])
    with pytest.raises(StoreError, match="is no index bundle, or is damaged"):
        import_(bundle, tmp_path / "there", EMBEDDER.identity)


def test_every_flipped_byte_is_found(bundle: Path, tmp_path: Path) -> None:
    whole = bundle.read_bytes()
    for place in range(0, len(whole), max(1, len(whole) // 60)):
        bundle.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            manifest = import_(bundle, tmp_path / f"there-{place}", EMBEDDER.identity)
        except StoreError:
            assert store.status(tmp_path / f"there-{place}").available == ()
        else:  # a byte that says nothing, such as a time
            verify(tmp_path / f"there-{place}" / manifest.id)


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file"):
        import_(tmp_path / "none.zip", tmp_path / "there", EMBEDDER.identity)
