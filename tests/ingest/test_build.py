"""From a source to draft pages: what is written, what is left alone, what is reported."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.ingest.reading import build
from trainmedic.ingest.drafts.store import load_drafts
from trainmedic.ingest.items import Failure, Options, Raw
from trainmedic.ingest.sources import source
from trainmedic.kb.pages.case import load_cases

TEXT = """TRL 训练奖励模型 loss 为 nan
问题背景
使用 TRL 0.12.0 的 RewardTrainer，torch_dtype 设为 float16，loss 变成 nan。
根本原因
半精度下 Adam 的 eps 下溢。
解决方案
- 改用 bfloat16。
# 不是标题
"""


def raw(origin: str = "a.txt", text: str = TEXT) -> Raw:
    return Raw(origin=origin, content=text, format="text")


def front(path: Path) -> dict[str, object]:
    loaded = yaml.safe_load(path.read_text(encoding="utf-8").split("---\n")[1])
    assert isinstance(loaded, dict)
    return loaded


def test_a_draft_holds_the_whole_article_in_its_sections(tmp_path: Path) -> None:
    summary = build([raw()], tmp_path)
    (made,) = summary.written
    page = (tmp_path / f"{made.id}.md").read_text(encoding="utf-8")
    for sentence in ("torch_dtype 设为 float16", "Adam 的 eps 下溢", "改用 bfloat16"):
        assert sentence in page
    assert page.index("### 现象") < page.index("torch_dtype 设为") < page.index("### 原因") < page.index("eps 下溢")


def test_a_draft_is_a_case_that_says_what_the_article_is_about_promises_nothing_and_is_not_published(
    tmp_path: Path,
) -> None:
    (made,) = build([raw()], tmp_path, lambda document: ("some-case",)).written
    data = front(tmp_path / f"{made.id}.md")
    assert (data["frameworks"], data["evidence"], data["status"]) == (["trl"], "reported", "draft")
    assert data["related"] == ["some-case"]
    assert "loss_nan" in data["signals"]  # type: ignore[operator]
    cases = load_cases((tmp_path,))
    assert [failure for failure in cases.failures if made.id in str(failure)] == []
    assert made.id in {case.id for case in cases.cases} - {case.id for case in cases.published}


def test_a_draft_that_a_reviewer_has_touched_is_left_alone(tmp_path: Path) -> None:
    (made,) = build([raw()], tmp_path).written
    renamed = tmp_path / f"my-better-name-{made.id[-8:]}.md"
    (tmp_path / f"{made.id}.md").rename(renamed)
    renamed.write_text("mine now", encoding="utf-8")
    again = build([raw()], tmp_path)
    assert (again.written, again.known) == ((), ("a.txt",))
    assert renamed.read_text(encoding="utf-8") == "mine now"


def test_the_same_article_twice_gives_one_draft(tmp_path: Path) -> None:
    summary = build([raw("a.txt"), raw("b.txt", TEXT + "转载补充一句。\n")], tmp_path)
    assert [made.origin for made in summary.written] == ["b.txt"]
    assert summary.copies == (("a.txt", "b.txt"),)


def test_a_draft_cannot_break_out_of_its_page(tmp_path: Path) -> None:
    code = Raw(origin="x.md", content="# T\n\ntext of it\n\n~~~\n```\n---\nstatus: published\n~~~\n", format="markdown")
    (made,) = build([code], tmp_path).written
    assert front(tmp_path / f"{made.id}.md")["status"] == "draft"
    assert made.id not in {case.id for case in load_cases((tmp_path,)).published}


def test_a_folder_is_read_in_the_order_of_its_paths(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.md").write_text("# B")
    (tmp_path / "a.html").write_bytes("<p>中文</p>".encode("gb18030"))
    (tmp_path / "c.txt").write_bytes("loss 变 nan".encode("utf-16"))
    (tmp_path / "ignored.pdf").write_bytes(b"%PDF")
    found = list(source("folder")(Options(location=str(tmp_path))))
    assert [(item.origin, item.format) for item in found if isinstance(item, Raw)] == [
        ("a.html", "html"),
        ("c.txt", "text"),
        ("sub/b.md", "markdown"),
    ]
    assert [item.content for item in found if isinstance(item, Raw)][:2] == ["<p>中文</p>", "loss 变 nan"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"", "empty"), (b"\0\1\2", "binary"), (b"\x80\xff\xff", "neither UTF-8, UTF-16 nor GB18030 text")],
)
def test_a_file_that_is_no_text_is_a_failure_with_its_reason(tmp_path: Path, data: bytes, reason: str) -> None:
    (tmp_path / "x.txt").write_bytes(data)
    assert list(source("folder")(Options(location=str(tmp_path / "x.txt")))) == [Failure(origin="x.txt", reason=reason)]


def test_an_edited_article_replaces_its_own_draft(tmp_path: Path) -> None:
    (made,) = build([raw()], tmp_path).written
    again = build([raw(text=TEXT.replace("bfloat16", "float32"))], tmp_path)
    assert (again.written, [draft.id for draft in again.updated]) == ((), [made.id])
    assert "改用 float32" in (tmp_path / f"{made.id}.md").read_text(encoding="utf-8")
    assert len(load_drafts(tmp_path)) == 1


def test_an_edited_article_is_only_told_if_a_reviewer_edited_the_draft(tmp_path: Path) -> None:
    (made,) = build([raw()], tmp_path).written
    page = tmp_path / f"{made.id}.md"
    page.write_text(page.read_text(encoding="utf-8") + "mine", encoding="utf-8")
    again = build([raw(text=TEXT + "补充。\n")], tmp_path)
    assert (again.updated, again.changed) == ((), ("a.txt",))
    assert page.read_text(encoding="utf-8").endswith("mine")
    assert [draft.source_state for draft in load_drafts(tmp_path)] == ["changed"]


def test_a_deleted_article_is_told_once_and_its_draft_remains(tmp_path: Path) -> None:
    (made,) = build([raw()], tmp_path, complete=True).written
    assert load_drafts(tmp_path) == (made,)
    assert build([], tmp_path, source="folder:two", complete=True).gone == ()
    assert build([], tmp_path, complete=True).gone == ("a.txt",)
    assert build([], tmp_path, complete=True).gone == ()
    assert (tmp_path / f"{made.id}.md").exists()
    assert [draft.source_state for draft in load_drafts(tmp_path)] == ["gone"]
    back = build([raw()], tmp_path, complete=True)
    assert [draft.id for draft in back.updated] == [made.id]
    assert [draft.source_state for draft in load_drafts(tmp_path)] == ["current"]
