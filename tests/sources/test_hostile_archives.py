"""What is refused in an archive, and that nothing of one is written, followed or run."""

from __future__ import annotations

import gzip
import stat
import struct
import tarfile
import warnings
from pathlib import Path
from zipfile import ZIP_BZIP2, ZipFile, ZipInfo

import pytest

from tests.every_case import every_case
from tests.sources.archives import CODE, gzipped, member, sdist, tarred, wheel, zipped
from trainmedic.kb.errors import InvalidRequest, SourceError, TrainmedicError
from trainmedic.kb.sources import archives, selection
from trainmedic.kb.sources.archives import archive_tree

WHEEL, SDIST = "tiny-1.0-py3-none-any.whl", "tiny-1.0.tar.gz"
OUTSIDE = ("../tiny/x.py", "/tiny/x.py", "tiny/../../x.py", "tiny\\x.py", "C:/tiny/x.py", "tiny/x\n.py")


def refusal(path: Path) -> str:
    with pytest.raises(SourceError) as caught:
        archive_tree(path)
    assert caught.value.hint, "the user is told what to do"
    return caught.value.message


@every_case("name", [*OUTSIDE, "/".join("d" * 41) + ".py", "tiny/" + "n" * 400 + ".py"])
def test_a_member_that_points_out_of_the_archive_or_is_too_deep_is_refused(tmp_path: Path, name: str) -> None:
    expected = "too long" if len(name) > 40 else "points out"
    assert expected in refusal(zipped(tmp_path / WHEEL, [("tiny/a.py", b""), (name, b"")]))
    assert expected in refusal(tarred(tmp_path / SDIST, [member("tiny-1.0/tiny/a.py"), member(name)]))


def test_two_members_of_one_name_are_refused(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = zipped(tmp_path / WHEEL, [("tiny/a.py", b"1"), ("tiny/a.py", b"2")])
    assert "twice" in refusal(path)
    assert "twice" in refusal(tarred(tmp_path / SDIST, [member("t/tiny/a.py", b"1"), member("t/tiny/a.py", b"2")]))
    assert "twice" in refusal(zipped(tmp_path / WHEEL, [("t/a.py", b""), ("tiny-1.0.data/purelib/t/a.py", b"2")]))


@every_case("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_links_are_not_followed(tmp_path: Path, kind: bytes) -> None:
    secret = tmp_path / "secret.py"
    secret.write_text("password = 1\n")
    links = [member(f"tiny-1.0/tiny/{place}.py", kind=kind, link=str(secret)) for place in ("a", "b")]
    tree = archive_tree(tarred(tmp_path / SDIST, [member("tiny-1.0/tiny/__init__.py"), *links]))
    assert tree.paths() == ("tiny/__init__.py",)


def test_a_link_in_a_wheel_is_not_followed(tmp_path: Path) -> None:
    link = ZipInfo("tiny/a.py")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    tree = archive_tree(zipped(tmp_path / WHEEL, [("tiny/__init__.py", b""), (link, b"/etc/hostname")]))
    assert tree.paths() == ("tiny/__init__.py",)


@every_case("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_a_device_is_refused(tmp_path: Path, kind: bytes) -> None:
    assert "device" in refusal(tarred(tmp_path / SDIST, [member("t/tiny/a.py"), member("t/tiny/b.py", kind=kind)]))


def test_an_encrypted_member_is_refused(tmp_path: Path) -> None:
    path = wheel(tmp_path, {"tiny/a.py": b"x = 1\n"})
    data = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + offset] |= 1
    path.write_bytes(data)
    assert "encrypted" in refusal(path)


def test_a_compression_that_no_wheel_has_is_refused(tmp_path: Path) -> None:
    with ZipFile(tmp_path / WHEEL, "w", ZIP_BZIP2) as archive:
        archive.writestr("tiny/a.py", b"x = 1\n")
    assert "compressed" in refusal(tmp_path / WHEEL)


def test_a_member_that_is_larger_than_it_says_is_refused(tmp_path: Path) -> None:
    path = wheel(tmp_path, {"tiny/a.py": b"x = 1\n" * 100_000})
    data = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        struct.pack_into("<I", data, data.index(signature) + offset, 10)
    path.write_bytes(data)
    assert "damaged" in refusal(path)


def test_a_file_above_the_bound_is_left_out(tmp_path: Path) -> None:
    large = {"tiny/large.py": b"#" * (4 * selection.MEBIBYTE + 1), "tiny/large.json": b" " * selection.MEBIBYTE}
    assert archive_tree(wheel(tmp_path, {**CODE, **large})).paths() == tuple(CODE)
    assert archive_tree(sdist(tmp_path, {**CODE, **large})).paths() == tuple(CODE)


@every_case("make", [wheel, sdist])
def test_too_much_code_is_refused(tmp_path: Path, make: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "MOST_BYTES", 1000)
    assert "of code" in refusal(make(tmp_path, {f"tiny/{number}.py": b"#" * 300 for number in range(4)}))
    monkeypatch.setattr(selection, "MOST_FILES", 3)
    assert "of code" in refusal(make(tmp_path, {f"tiny/{number}.py": b"" for number in range(4)}))


@every_case("make", [wheel, sdist])
def test_too_many_members_are_refused(tmp_path: Path, make: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "_MOST_MEMBERS", 3)
    assert "members" in refusal(make(tmp_path, {f"docs/{number}.txt": b"" for number in range(4)}))


@every_case("size", [1 << 31, (1 << 32) - 1])
def test_a_zip_that_says_its_directory_is_huge_is_not_opened(tmp_path: Path, size: int) -> None:
    path = wheel(tmp_path)
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, data.index(b"PK\x05\x06") + 12, size)
    path.write_bytes(data)
    assert "huge" in refusal(path)


def test_a_zip_with_a_second_directory_for_larger_numbers_is_not_opened(tmp_path: Path) -> None:
    path = wheel(tmp_path)
    data = path.read_bytes()
    end = data.index(b"PK\x05\x06")
    path.write_bytes(data[:end] + b"PK\x06\x07" + bytes(16) + data[end:])
    assert "huge" in refusal(path)


def test_a_tar_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "_MOST_UNPACKED", selection.MEBIBYTE)
    assert "unpacks to over 1 MiB" in refusal(sdist(tmp_path, {**CODE, "data.bin": bytes(2 * selection.MEBIBYTE)}))


def test_a_header_that_says_it_is_huge_is_refused(tmp_path: Path) -> None:
    huge, _ = member("PaxHeader", kind=tarfile.XHDTYPE)
    huge.size = 1 << 32
    assert "huge" in refusal(gzipped(tmp_path / SDIST, huge.tobuf() + bytes(1024)))


def test_an_archive_that_is_too_large_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "LARGEST_ARCHIVE", 10)
    assert "is over" in refusal(wheel(tmp_path))


@every_case(
    "content", [b"", b"no archive", b"PK\x03\x04" + bytes(50), gzip.compress(b"no tar"), gzip.compress(b"")[:9]]
)
@every_case("name", [WHEEL, SDIST, "tiny-1.0.zip"])
def test_what_is_no_archive_is_damaged_or_empty(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    assert "damaged" in (message := refusal(tmp_path / name)) or "no Python code" in message


def test_a_cut_archive_is_damaged(tmp_path: Path) -> None:
    code = {f"tiny/{number}.py": str(hash(number)).encode() * 500 for number in range(20)}
    for path in (wheel(tmp_path, code), sdist(tmp_path, code)):
        data = path.read_bytes()
        for end in range(1, len(data), len(data) // 7):
            path.write_bytes(data[:end])
            with pytest.raises(TrainmedicError):
                archive_tree(path)


@every_case("name", ["tiny.whl", "tiny-1.0.egg", "tiny-x.tar.gz", "tiny-1.0-cp.whl", "tiny"])
def test_a_file_that_is_not_named_like_a_release_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(InvalidRequest):
        archive_tree(tmp_path / name)


def test_only_training_code_is_taken_and_named_as_it_is_imported(tmp_path: Path) -> None:
    files = {
        "setup.py": b"raise SystemExit\n",
        "pyproject.toml": b"",
        "src/tiny/__init__.py": b"",
        "src/tiny/configs/base.yaml": b"lr: 1\n",
        "src/tiny/tests/test_x.py": b"",
        "src/tiny/weights.bin": b"\0",
        "tests/test_y.py": b"",
        "docs/conf.py": b"",
        "examples/run.py": b"",
        ".github/script.py": b"",
    }
    assert archive_tree(sdist(tmp_path, files)).paths() == ("tiny/__init__.py", "tiny/configs/base.yaml")


def test_an_sdist_that_says_what_is_installed_is_believed(tmp_path: Path) -> None:
    files = {"tiny/a.py": b"", "other/b.py": b"", "tiny.egg-info/top_level.txt": b"tiny\n"}
    assert archive_tree(sdist(tmp_path, files)).paths() == ("tiny/a.py",)


def test_a_wheel_and_an_sdist_of_the_same_code_have_one_digest(tmp_path: Path) -> None:
    assert archive_tree(wheel(tmp_path)).digest == archive_tree(sdist(tmp_path, CODE)).digest
