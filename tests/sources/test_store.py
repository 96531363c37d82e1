"""What is stored: whole whoever else writes, and carried in a bundle that is not trusted."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import pytest

from tests.every_case import every_case
from tests.sources.archives import CODE, wheel
from trainmedic.kb.errors import InvalidRequest, NotFound, SourceError, TrainmedicError
from trainmedic.kb.sources.archives import archive_tree
from trainmedic.kb.sources.bundle import export_bundle, import_bundle
from trainmedic.kb.sources.store import ABOUT, Store
from trainmedic.kb.sources.tree import tree_of

Name = Callable[[str], str]
PARTS = {f"tiny/part{number}.py": Random(number).randbytes(2000).hex().encode() for number in range(20)}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store with two releases that differ by a file."""
    found = Store(tmp_path / "store")
    found.add(archive_tree(wheel(tmp_path, {**CODE, **PARTS})))
    found.add(archive_tree(wheel(tmp_path, {**CODE, **PARTS, "tiny/new.py": b"1\n"}, version="1.1")))
    return found


def test_storing_again_changes_nothing(store: Store) -> None:
    before = {path: path.read_bytes() for path in store.folder.rglob("*.*")}
    store.add(store.open("tiny", "1.1"))
    assert {path: path.read_bytes() for path in store.folder.rglob("*.*")} == before


def test_a_large_file_and_an_empty_one_come_back(tmp_path: Path) -> None:
    contents = {"tiny/big.py": Random(1).randbytes(300_000), "tiny/empty.py": b"", "tiny/small.py": b"x = 1\n"}
    stored = Store(tmp_path).add(tree_of("tiny", "1.0", "wheel", contents))
    assert {path: stored.read(path) for path in stored.paths()} == contents


def test_two_processes_that_store_one_release_at_once_both_end_right(tmp_path: Path) -> None:
    path = wheel(tmp_path, {**CODE, **PARTS})
    code = """
import sys
from pathlib import Path
from trainmedic.kb.sources.archives import archive_tree
from trainmedic.kb.sources.store import Store
tree = archive_tree(Path(sys.argv[1]))
for _ in range(30):
    stored = Store(Path(sys.argv[2])).add(tree)
    assert [stored.read(path) for path in stored.paths()] == [tree.read(path) for path in tree.paths()]
"""
    command = [sys.executable, "-c", code, str(path), str(tmp_path / "store")]
    both = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    assert [(process.communicate()[1], process.returncode) for process in both] == [("", 0)] * 2
    assert Store(tmp_path / "store").open("tiny", "1.0").digest == archive_tree(path).digest
    assert not list((tmp_path / "store").rglob("*.new"))


@every_case("content", [b"", b"no zip", bytes(100)])
def test_what_is_damaged_is_said_with_the_folder_to_delete(store: Store, content: bytes) -> None:
    store.path("tiny", "1.1").write_bytes(content)
    with pytest.raises(SourceError, match="is damaged") as caught:
        store.open("tiny", "1.1")
    assert str(store.folder / "tiny") in str(caught.value.hint)


def test_a_text_that_is_not_the_one_that_was_stored_is_not_read(store: Store) -> None:
    path = store.path("tiny", "1.1")
    rewrite(path, path, lambda name, data: b"2\n" if name == "tiny/new.py" else data)
    with pytest.raises(SourceError, match="is damaged"):
        store.open("tiny", "1.1").text("tiny/new.py")


def test_a_full_disk_is_an_error_that_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(SourceError, match="No space left"):
        Store(tmp_path / "store").add(archive_tree(wheel(tmp_path)))
    assert [path for path in (tmp_path / "store").rglob("*") if path.is_file()] == []


def test_a_bundle_carries_releases_to_another_store(store: Store, tmp_path: Path) -> None:
    bundle = tmp_path / "all.bundle"
    assert export_bundle(store, bundle) == 2
    other = Store(tmp_path / "other")
    assert import_bundle(other, bundle) == import_bundle(other, bundle) == 2
    tree = other.open("tiny", "1.1")
    assert (tree.digest, tree.origin) == (store.open("tiny", "1.1").digest, "bundle")
    assert [tree.read(path) for path in tree.paths()] == [store.open("tiny", "1.1").read(path) for path in tree.paths()]


def test_nothing_to_export_and_no_file_to_import_are_said(store: Store, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        export_bundle(store, tmp_path / "none", ["other"])
    with pytest.raises(InvalidRequest):
        import_bundle(store, tmp_path / "none")


Change = Callable[[dict[str, Any]], None]


def _set(key: str, value: Any) -> Change:
    return lambda about: about.__setitem__(key, value)


@every_case(
    "change",
    [
        *(_set("package", "../../tiny"), _set("version", "../1"), _set("digest", "0" * 64), _set("digest", 7)),
        *(lambda about: about.pop("digest"), lambda about: about.clear()),
    ],
)
def test_a_bundle_that_says_what_is_not_so_is_refused(store: Store, tmp_path: Path, change: Change) -> None:
    def changed(name: str, data: bytes) -> bytes:
        if name != ABOUT:
            return data
        about = json.loads(data)
        change(about)
        return json.dumps(about).encode()

    refused(rewritten(store, tmp_path, changed), tmp_path)


@every_case("name", ["../../x.py", "/x.py", "tiny/x.exe", "tiny/other.py"])
def test_a_bundle_with_other_names_is_refused(store: Store, tmp_path: Path, name: str) -> None:
    bundle = rewritten(store, tmp_path, lambda _, data: data, lambda old: name if old == "tiny/config.py" else old)
    refused(bundle, tmp_path)


@every_case("content", [b"", bytes(64 * 1024 * 1024), b"x" * 3000])
def test_a_bundle_with_another_content_or_a_bomb_is_refused(store: Store, tmp_path: Path, content: bytes) -> None:
    refused(rewritten(store, tmp_path, lambda name, data: content if name == ABOUT else data), tmp_path)
    refused(rewritten(store, tmp_path, lambda name, data: content if name == "tiny/config.py" else data), tmp_path)


@every_case("content", [b"", b"no zip", bytes(3000)])
def test_a_bundle_that_is_none_or_holds_what_is_no_release_is_refused(tmp_path: Path, content: bytes) -> None:
    bundle = tmp_path / "bad.bundle"
    bundle.write_bytes(content)
    refused(bundle, tmp_path)
    with ZipFile(bundle, "w", ZIP_STORED) as bad:
        bad.writestr("tiny/1.0.zip", content)
    refused(bundle, tmp_path)


def refused(bundle: Path, folder: Path) -> None:
    other = Store(folder / "other")
    with pytest.raises(TrainmedicError):
        import_bundle(other, bundle)
    assert not other.folder.exists()


def rewrite(
    source: Path | BytesIO, target: Path | BytesIO, change: Callable[[str, bytes], bytes], name: Name = str
) -> None:
    """A zip with other contents, and other names."""
    with ZipFile(source) as good:
        members = {name(each): change(each, good.read(each)) for each in good.namelist()}
    with ZipFile(target, "w", ZIP_DEFLATED) as bad:
        for each, content in members.items():
            bad.writestr(each, content)


def rewritten(store: Store, folder: Path, change: Callable[[str, bytes], bytes], name: Name = str) -> Path:
    """A bundle with one release, whose members are changed."""
    release = BytesIO()
    rewrite(store.path("tiny", "1.0"), release, change, name)
    with ZipFile(folder / "bad.bundle", "w", ZIP_STORED) as bad:
        bad.writestr("tiny/1.0.zip", release.getvalue())
    return folder / "bad.bundle"
