"""The files of an archive are read as if they had been attached; what an archive says of itself is not believed."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import pytest

from tests.every_case import every_case
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.parse.source import Limits
from trainmedic.kb.parse.text import archives
from trainmedic.kb.parse.text.archives import is_archive, open_archive

LOG = b"{'loss': 1.5, 'grad_norm': 2.0, 'epoch': 0.1}\n" * 3 + b"{'loss': nan, 'epoch': 0.2}\n"
FILES = {"run/train.log": LOG, "run/model.safetensors": b"\0" * 900, "run/sft.yaml": b"learning_rate: 1.0e-4\n"}


def zipped(files: Mapping[str, bytes], *, links: Mapping[str, str] | None = None, folders: Sequence[str] = ()) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for folder in folders:
            archive.mkdir(folder)
        for name, target in (links or {}).items():
            link = zipfile.ZipInfo(name)
            link.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(link, target)
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def tarred(
    files: Mapping[str, bytes],
    mode: Literal["w", "w:gz", "w:bz2"] = "w",
    *,
    links: Mapping[str, str] | None = None,
    folders: Sequence[str] = (),
) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name in folders:
            folder = tarfile.TarInfo(name)
            folder.type = tarfile.DIRTYPE
            archive.addfile(folder)
        for name, target in (links or {}).items():
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, target
            archive.addfile(link)
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


@every_case("content", [zipped(FILES), tarred(FILES), tarred(FILES, "w:gz"), tarred(FILES, "w:bz2")])
def test_each_file_is_read_under_its_own_name_and_lines(content: bytes) -> None:
    evidence = parse("", (Attachment(name="logs.x", content=content),))
    assert [(item.name, item.kind, item.read) for item in evidence.receipt.inputs[1:]] == [
        ("logs.x", "archive", True),
        ("logs.x/run/train.log", "log", True),
        ("logs.x/run/sft.yaml", "yaml", True),
    ]
    assert evidence.receipt.inputs[1].note == "2 of 3 files"
    (nan,) = (signal.span for signal in evidence.signals if signal.kind == "loss_nan")
    assert (nan.attachment, nan.line) == ("logs.x/run/train.log", 4)


OUTSIDE = {"../../etc/passwd": b"x\n", "/abs/a.log": b"y\n"}


@every_case("pack", [zipped, tarred])
def test_links_folders_and_paths_out_of_the_archive_are_not_followed(pack: Callable[..., bytes]) -> None:
    content = pack(OUTSIDE, links={"run/b.log": "/etc/passwd"}, folders=("run",))
    assert [file.name for file in open_archive("a", content, 9).files] == ["a/etc/passwd", "a/abs/a.log"]


@every_case("inner", [zipped(FILES), tarred(FILES), tarred(FILES, "w:gz")])
def test_an_archive_within_an_archive_is_named_and_not_opened(inner: bytes) -> None:
    evidence = parse("", (Attachment(name="a.zip", content=zipped({"b": inner, "c.log": LOG})),))
    assert [item.name for item in evidence.receipt.inputs[1:] if item.read] == ["a.zip", "a.zip/c.log"]
    (problem,) = evidence.receipt.problems
    assert problem.message.startswith("a.zip/b is an archive within")


@every_case("content", [zipped(FILES)[:-40], zipped(FILES)[:200], tarred(FILES)[:700], tarred(FILES, "w:gz")[:90]])
def test_a_damaged_archive_is_said_to_be_one(content: bytes) -> None:
    evidence = parse("", (Attachment(name="a.zip", content=content),))
    assert evidence.receipt.inputs[1].kind in ("archive", "binary")
    assert evidence.receipt.problems


@every_case("pack", [zipped, tarred])
def test_of_a_bomb_only_so_much_is_unpacked(pack: object) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archives, "MOST_UNPACKED", 3_000_000)
        files = {f"{n}.log": b"x" * 99 + b"\n" * 2_000_000 for n in range(5)}
        contents = open_archive("bomb", zipped(files) if pack is zipped else tarred(files), 64)
    assert len(contents.files) <= 2
    assert contents.problems


def test_a_zip_whose_directory_is_huge_is_refused_before_it_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "LARGEST_DIRECTORY", 100)
    contents = open_archive("a.zip", zipped(FILES), 9)
    assert contents.files == ()
    assert [problem.message for problem in contents.problems] == [
        "a.zip could not be read further: its directory is huge"
    ]


def test_no_more_files_are_read_than_may_be_attached() -> None:
    content = zipped({f"{n}.log": LOG for n in range(6)})
    receipt = parse("", (Attachment(name="a.zip", content=content),), limits=Limits(attachments=3)).receipt
    assert [item.name for item in receipt.inputs[2:]] == ["a.zip/0.log", "a.zip/1.log", "a.zip/2.log"]
    assert {problem.code for problem in receipt.problems} == {"truncated"}


def test_a_document_of_an_office_is_no_archive() -> None:
    assert not is_archive(zipped({"[Content_Types].xml": b"<x/>", "word/document.xml": b"<x/>"}))


def test_an_encrypted_member_is_not_read_and_that_is_said() -> None:
    content = bytearray(zipped({"a.log": LOG}))
    for mark in (b"PK\x03\x04", b"PK\x01\x02"):
        content[content.find(mark) + (6 if mark[2] == 3 else 8)] |= 1
    contents = open_archive("a.zip", bytes(content), 9)
    assert (contents.files, [problem.code for problem in contents.problems]) == ((), ["archive"])
