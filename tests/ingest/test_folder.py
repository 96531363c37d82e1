"""Files of many kinds as write-ups; whatever cannot be read is named."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest

from trainmedic.ingest.clean import clean
from trainmedic.ingest.document import Failure, Raw
from trainmedic.ingest.sources import source

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
BLOG = GITHUB.replace("https://github.com/x/y/issues/7", "https://blog.example.org/nan")


def read(path: Path) -> list[Raw | Failure]:
    return [item for item in source("folder").read(str(path)) if isinstance(item, Raw | Failure)]


def written(tmp_path: Path, name: str, content: bytes | str) -> list[Raw | Failure]:
    data = content.encode() if isinstance(content, str) else content
    (tmp_path / name).write_bytes(data)
    return read(tmp_path / name)


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


def test_a_table_becomes_markdown(tmp_path: Path) -> None:
    (raw,) = written(tmp_path, "runs.csv", "run,loss\na,nan\n")
    assert isinstance(raw, Raw)
    assert "| a | nan |" in raw.content


def test_a_word_document_is_read(tmp_path: Path) -> None:
    namespace = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    kinds = "http://schemas.openxmlformats.org/package/2006"
    paragraph = "<w:p><w:r><w:t>loss 变成 nan</w:t></w:r></w:p>"
    document = f'<w:document xmlns:w="{namespace}"><w:body>{paragraph}</w:body></w:document>'
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    relations = (
        f'<Relationships xmlns="{kinds}/relationships">'
        f'<Relationship Id="r1" Type="{office}" Target="word/document.xml"/></Relationships>'
    )
    main = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    types = (
        f'<Types xmlns="{kinds}/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/word/document.xml" ContentType="{main}"/></Types>'
    )
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as packed:
        packed.writestr("[Content_Types].xml", types)
        packed.writestr("_rels/.rels", relations)
        packed.writestr("word/document.xml", document)
    (raw,) = written(tmp_path, "report.docx", data.getvalue())
    assert isinstance(raw, Raw)
    assert "loss 变成 nan" in raw.content


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.pdf", b"%PDF-1.4 broken"),
        ("a.docx", b"PK\x03\x04 broken"),
        ("a.ipynb", b"{}"),
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


def test_an_empty_folder_is_named(tmp_path: Path) -> None:
    assert [type(item) for item in read(tmp_path)] == [Failure]


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


def test_hidden_folders_are_no_write_ups(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "a.md").write_text("# x")
    (tmp_path / "a.md").write_text("# y")
    assert [item.origin for item in read(tmp_path)] == ["a.md"]


def test_a_saved_issue_keeps_its_comments_and_its_address(tmp_path: Path) -> None:
    (raw,) = written(tmp_path, "issue.html", GITHUB)
    assert isinstance(raw, Raw)
    (document,) = clean([raw])
    assert document.url == "https://github.com/x/y/issues/7"
    assert "setting bf16 to true" in document.text
    assert "Sign in" not in document.text


def test_comments_below_an_article_are_left_out(tmp_path: Path) -> None:
    (raw,) = written(tmp_path, "blog.html", BLOG)
    assert isinstance(raw, Raw)
    (document,) = clean([raw])
    assert "setting bf16 to true" not in document.text
