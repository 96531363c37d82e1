"""A page that repeats a sentence of what it is drawn from is found; quoted code and messages are not its sentences."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from trainmedic.ingest.tools.originality import digest, repeated, sentences, stored
from trainmedic.ingest.tools.originals import digests, read_source

SOURCE = "The reference model is loaded a second time, which doubles the memory of a run. Short one."
CHINESE = "参考模型会被再加载一次，因此显存占用会翻倍，这一点在文档里没有写明白也没有提示。短句。"


def test_a_sentence_of_a_source_is_found_whatever_its_case_and_marks() -> None:
    page = (
        "## Cause\n\nIt is slow. **The reference model** is loaded a second time, which\ndoubles the memory of a run!"
    )
    assert repeated(page, digests([SOURCE])) == (
        "the reference model is loaded a second time which doubles the memory of a run",
    )


def test_a_chinese_sentence_is_found_too() -> None:
    assert len(repeated(f"### 原因\n\n{CHINESE}", digests([CHINESE]))) == 1


def test_another_wording_of_the_same_fact_is_no_repetition() -> None:
    assert repeated("Memory doubles, because the run loads a second copy as its reference.", digests([SOURCE])) == ()


def test_short_sentences_and_code_are_left_out() -> None:
    fence = "```\nThe reference model is loaded a second time, which doubles the memory of a run.\n```"
    assert (
        list(sentences(f"Short one.\n\n{fence}\n\n`a span of code is never one of the sentences that are compared`"))
        == []
    )


def test_an_error_message_in_quotes_is_no_sentence_of_the_page() -> None:
    assert (
        list(sentences('It says "the train dataset is empty and nothing can be learnt from it at all" and stops.'))
        == []
    )


def test_comment_marks_of_source_code_do_not_hide_a_sentence() -> None:
    code = (
        "def f():\n    # the gradients of all micro batches are added up before\n    # the optimizer takes its step\n"
    )
    page = "The gradients of all micro batches are added up before the optimizer takes its step."
    assert len(repeated(page, digests([code]))) == 1


def test_a_digest_does_not_depend_on_the_run() -> None:
    assert digest("a") == digest("a")
    assert len(digest("a")) == 12


def test_no_page_repeats_a_sentence_of_a_source() -> None:
    digests_of_sources = stored()
    assert len(digests_of_sources) > 10_000
    folder = Path(__file__).parent.parent / "kb"
    pages = [*folder.glob("rules/*/*.md"), *folder.glob("cases/*/*.md")]
    assert len(pages) > 600
    texts = {page.name: page.read_text(encoding="utf-8") for page in pages}
    assert {name: found for name, text in texts.items() if (found := repeated(text, digests_of_sources))} == {}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run(["git", "-C", str(tmp_path), *identity, *arguments], check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("Hello.", encoding="utf-8")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    git("tag", "release/v1")
    return tmp_path


def test_a_file_is_read_at_the_tag_that_its_address_names(checkout: Path) -> None:
    address = "https://github.com/some/project/blob/release/v1/docs/a.md#L1"
    assert read_source(address, {"some/project": checkout}) == "Hello."


def test_a_source_that_is_not_there_is_an_error(checkout: Path) -> None:
    for address in ("blob/release/v2/docs/a.md", "blob/release/v1/docs/b.md", "commit/0123456789"):
        with pytest.raises(LookupError):
            read_source(f"https://github.com/some/project/{address}", {"some/project": checkout})


def test_a_thread_or_another_repository_cannot_be_read_here(checkout: Path) -> None:
    for address in ("some/project/issues/1", "other/project/blob/main/a.md", "other/project/commit/0123456789"):
        assert read_source(f"https://github.com/{address}", {"some/project": checkout}) is None
