"""Files of many kinds as write-ups; whatever cannot be read is named."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest

from tests.ingest.reading import clean
from trainmedic.ingest.items import Failure, Options, Raw
from trainmedic.ingest.read import conversion
from trainmedic.ingest.sources import source
from trainmedic.kb.confined import Confined

NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "source": ["# Post-mortem\n", "The loss is nan."]},
        {
            "cell_type": "code",
            "source": "trainer.train()",
            "outputs": [
                {"output_type": "stream", "text": ["{'loss': nan}\n"]},
                {"output_type": "error", "ename": "ValueError", "evalue": "bad batch", "traceback": ["…"]},
                {"output_type": "execute_result", "data": {"text/plain": ["TrainOutput()"]}},
            ],
        },
    ]
}
GITHUB = """<html><head><title>loss nan · Issue #7 · x/y</title>
<link rel="canonical" href="https://github.com/x/y/issues/7"></head><body><nav>Sign in</nav><main>
<h1>loss nan</h1><div class="react-issue-body"><p>The loss is nan after ten steps.</p></div>
<div class="react-issue-comment"><p>This is fixed by setting bf16 to true.</p></div></main></body></html>"""


def read(path: Path) -> list[Raw | Failure]:
    return [item for item in source("folder")(Options(location=str(path))) if isinstance(item, Raw | Failure)]


def written(tmp_path: Path, name: str, content: bytes | str, *, whole: bool = False) -> list[Raw | Failure]:
    """What is read of the file, or of the ``whole`` folder."""
    data = content.encode() if isinstance(content, str) else content
    (tmp_path / name).write_bytes(data)
    return read(tmp_path if whole else tmp_path / name)


def archive(**members: bytes) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as packed:
        for name, content in members.items():
            packed.writestr(name.replace("__", "."), content)
    return data.getvalue()


def test_a_notebook_keeps_its_text_code_and_outputs(tmp_path: Path) -> None:
    (raw,) = written(tmp_path, "run.ipynb", json.dumps(NOTEBOOK))
    assert isinstance(raw, Raw)
    for part in ("# Post-mortem", "trainer.train()", "{'loss': nan}", "ValueError: bad batch", "TrainOutput()"):
        assert part in raw.content


def word(body: str, start: str = "", encoding: str = "utf-8", **parts: bytes) -> bytes:
    """A document of Word; ``start`` precedes its root element."""
    office = "http://schemas.openxmlformats.org"
    relation = f"{office}/officeDocument/2006/relationships/officeDocument"
    relations = f'<Relationship Id="r1" Type="{relation}" Target="word/document.xml"/>'
    document = f'{start}<w:document xmlns:w="{office}/wordprocessingml/2006/main"><w:body>{body}</w:body></w:document>'
    kinds = (
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Override PartName="/word/document.xml" ContentType='
        '"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/>'
    )
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("[Content_Types].xml", f'<Types xmlns="{office}/package/2006/content-types">{kinds}</Types>')
        packed.writestr(
            "_rels/.rels", f'<Relationships xmlns="{office}/package/2006/relationships">{relations}</Relationships>'
        )
        packed.writestr("word/document.xml", document.encode(encoding))
        for name, content in parts.items():
            packed.writestr(f"word/media/{name}", content)
    return data.getvalue()


def paragraph(text: str) -> str:
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


def test_a_word_document_is_read(tmp_path: Path) -> None:
    (raw,) = written(tmp_path, "report.docx", word(paragraph("loss 变成 nan"), picture=b"x" * 100_000))
    assert isinstance(raw, Raw)
    assert "loss 变成 nan" in raw.content


ENTITY = '<!DOCTYPE w:document [<!ENTITY a "loss">]>'


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (word("<w:proofErr/>" * 200_000), "unpacks to too much (word/document.xml)"),
        (word(paragraph("a"), picture=b"0" * (21 * 1024 * 1024)), "unpacks to too much (word/media/picture)"),
        (word(paragraph("&a;"), ENTITY, "utf-16"), "declares entities (word/document.xml)"),
    ],
)
def test_a_document_that_unpacks_to_too_much_or_declares_entities_is_refused(
    tmp_path: Path, document: bytes, reason: str
) -> None:
    (tmp_path / "b.docx").write_bytes(word(paragraph("nothing wrong")))
    failure, other = written(tmp_path, "a.docx", document, whole=True)
    assert isinstance(failure, Failure)
    assert reason in failure.reason
    assert isinstance(other, Raw)


def test_a_document_that_takes_too_long_costs_its_item_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "b.ipynb").write_text(json.dumps(NOTEBOOK), encoding="utf-8")
    with Confined(0.6) as processes:
        monkeypatch.setattr(conversion, "_processes", lambda: processes)
        failure, other = written(tmp_path, "a.docx", word(paragraph("a") * 35_000), whole=True)
    assert isinstance(failure, Failure)
    assert failure.reason == "takes longer than 0.6 s to read"
    assert isinstance(other, Raw)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.pdf", b"%PDF-1.4 broken"),
        ("a.docx", b"PK\x03\x04 broken"),
        ("a.ipynb", b"[" * 100_000),
        ("a.zip", b"no archive"),
        ("a.png", b"\x89PNG"),
        ("a", b"text without a kind"),
        ("a.md", b""),
        ("a.txt", b"\0\0\0"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    (failure,) = written(tmp_path, name, content)
    assert isinstance(failure, Failure)
    assert (failure.origin, bool(failure.reason)) == (name, True)


def test_an_archive_is_read_member_by_member_and_never_unpacked(tmp_path: Path) -> None:
    data = archive(a__md=b"# One\ntext", b__bin=b"x", inner__zip=archive(c__md=b"x"))
    items = written(tmp_path, "all.zip", data)
    assert [item.origin for item in items] == ["all.zip/a.md", "all.zip/b.bin", "all.zip/inner.zip/c.md"]
    assert [type(item) for item in items] == [Raw, Failure, Raw]
    assert list(tmp_path.iterdir()) == [tmp_path / "all.zip"]


def test_a_member_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("bomb.md", b"0" * (6 * 1024 * 1024))
    assert len(data.getvalue()) < 20_000
    (failure,) = written(tmp_path, "bomb.zip", data.getvalue())
    assert isinstance(failure, Failure)
    assert "larger than 5 MiB" in failure.reason


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_member_is_named_and_the_next_one_is_read(tmp_path: Path, method: int) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as packed:
        packed.writestr("a.md", b"# One\n" + bytes(range(32, 127)) * 50)
        packed.writestr("b.md", b"# Two\ntext")
    content = bytearray(data.getvalue())
    content[50:70] = b"\xff" * 20
    failure, page = written(tmp_path, "x.zip", bytes(content))
    assert isinstance(failure, Failure)
    assert (failure.origin, bool(failure.reason)) == ("x.zip/a.md", True)
    assert isinstance(page, Raw)


def test_a_saved_issue_keeps_its_comments_and_its_address(tmp_path: Path) -> None:
    (raw,) = written(tmp_path, "issue.html", GITHUB)
    assert isinstance(raw, Raw)
    (document,) = clean([raw])
    assert document.url == "https://github.com/x/y/issues/7"
    assert "setting bf16 to true" in document.text
    assert "Sign in" not in document.text
