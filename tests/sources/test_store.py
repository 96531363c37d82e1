"""What is stored: shared between releases, whole whoever else writes, and carried in a bundle that is not trusted."""

from __future__ import annotations

import json
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import pytest

from tests.every_case import every_case
from tests.sources.archives import CODE, wheel
from trainmedic.kb.errors import InvalidRequest, NotFound, SourceError, TrainmedicError
from trainmedic.kb.sources.archives import archive_tree
from trainmedic.kb.sources.bundle import export_bundle, import_bundle
from trainmedic.kb.sources.store import Store
from trainmedic.kb.sources.tree import tree_of

PARTS = {f"tiny/part{number}.py": Random(number).randbytes(2000).hex().encode() for number in range(20)}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store with two releases that differ by a file."""
    found = Store(tmp_path / "store")
    found.add(archive_tree(wheel(tmp_path, {**CODE, **PARTS})))
    found.add(archive_tree(wheel(tmp_path, {**CODE, **PARTS, "tiny/new.py": b"1\n"}, version="1.1")))
    return found


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.chunk"))


def test_two_releases_share_the_files_that_did_not_change(store: Store, tmp_path: Path) -> None:
    alone = Store(tmp_path / "alone")
    alone.add(store.open("tiny", "1.0"))
    assert size(store.folder) < size(alone.folder) + 100
    assert store.open("tiny", "1.1").text("tiny/part7.py").encode() == PARTS["tiny/part7.py"]


def test_storing_again_changes_nothing(store: Store) -> None:
    before = {path: path.read_bytes() for path in store.folder.rglob("*.*")}
    store.add(store.open("tiny", "1.1"))
    assert {path: path.read_bytes() for path in store.folder.rglob("*.*")} == before


def test_a_file_larger_than_a_block_and_an_empty_one_come_back(tmp_path: Path) -> None:
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


@every_case("suffix", ["list", "chunk"])
@every_case("content", [b"", b"no list", zlib.compress(b"[]"), bytes(100)])
def test_what_is_damaged_is_said_with_the_folder_to_delete(store: Store, suffix: str, content: bytes) -> None:
    before = {path: path.read_bytes() for path in store.folder.rglob(f"*.{suffix}")}
    for path in before:
        path.write_bytes(content)
    with pytest.raises(SourceError, match="is damaged") as caught:
        store.open("tiny", "1.1").text("tiny/new.py")
    assert str(store.folder / "tiny") in str(caught.value.hint)
    for path, data in before.items():
        path.write_bytes(data)


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
    return lambda listed: listed.__setitem__(key, value)


def _text(index: int, value: Any) -> Change:
    return lambda listed: listed["texts"][0].__setitem__(index, value)


def _renamed(name: str) -> Change:
    return lambda listed: listed["files"].__setitem__(name, listed["files"].pop("tiny/config.py"))


@every_case(
    "change",
    [
        *map(_renamed, ("../../x.py", "/x.py", "tiny/x.exe", "tiny/other.py")),
        _set("package", "../../tiny"),
        _set("version", "../1"),
        _set("digest", "0" * 64),
        _set("chunks", ["../../../etc/passwd"]),
        _set("chunks", [7]),
        _set("files", {}),
        _set("files", []),
        _set("format", 99),
        *(_text(index, -1) for index in range(2, 6)),
        *(_text(index, 1 << 60) for index in range(1, 6)),
        *(_text(index, "x") for index in range(6)),
        _text(5, 3),
    ],
)
def test_a_bundle_that_says_what_is_not_so_is_refused(store: Store, tmp_path: Path, change: Change) -> None:
    bundle = rewritten(store, tmp_path, lambda name, data: _changed(data, change) if name.endswith(".list") else data)
    other = Store(tmp_path / "other")
    with pytest.raises(TrainmedicError):
        import_bundle(other, bundle)
    assert not other.folder.exists()


def _changed(data: bytes, change: Change) -> bytes:
    listed = json.loads(zlib.decompress(data))
    change(listed)
    return zlib.compress(json.dumps(listed).encode())


@every_case("content", [b"", zlib.compress(bytes(64 * 1024 * 1024)), b"x" * 3000])
def test_a_bundle_with_another_content_or_a_bomb_is_refused(store: Store, tmp_path: Path, content: bytes) -> None:
    for suffix in (".list", ".chunk"):
        bundle = rewritten(store, tmp_path, _replacing(suffix, content))
        with pytest.raises(SourceError, match="not a bundle, or is damaged"):
            import_bundle(Store(tmp_path / "other"), bundle)
    assert not (tmp_path / "other").exists()


def _replacing(suffix: str, content: bytes) -> Callable[[str, bytes], bytes]:
    return lambda name, data: content if name.endswith(suffix) else data


def rewritten(store: Store, folder: Path, change: Callable[[str, bytes], bytes]) -> Path:
    export_bundle(store, folder / "good.bundle", ["tiny"])
    with ZipFile(folder / "good.bundle") as good, ZipFile(folder / "bad.bundle", "w", ZIP_STORED) as bad:
        for name in good.namelist():
            if name != "tiny/1.1.list":
                bad.writestr(name, change(name, good.read(name)))
    return folder / "bad.bundle"
