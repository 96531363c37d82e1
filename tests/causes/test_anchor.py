"""Anchors name the spot in source that a page rests on, and a program counts what rests on one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.causes.test_page import PAGE
from trainmedic.ingest.authoring.anchored import Claims
from trainmedic.kb.pages.anchor import Cut, anchors
from trainmedic.kb.pages.page import PageError, read_page

FILE = "https://github.com/huggingface/trl/blob/v0.27.1/trl/trainer/sft_trainer.py"


def page(source: str) -> str:
    return PAGE.replace("sources: [", f"sources: [{{says: source, {source}}}, ")


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (f'url: "{FILE}", in: ">=0.27"', "a file needs text"),
        (f'url: "{FILE}", text: x, in: "0.27"', "not a version range"),
        ('url: "https://github.com/huggingface/trl/pull/1", text: x', "text goes with a file"),
        ('url: "https://example.org/x", text: x', "known package"),
    ],
)
def test_an_anchor_that_cannot_be_read_again_is_refused(source: str, problem: str) -> None:
    with pytest.raises(PageError, match=problem):
        list(anchors(read_page(page(source), "toy-case.md")[1]))


def test_a_bound_is_anchored_by_a_text_or_a_change_with_that_bound(tmp_path: Path) -> None:
    path = tmp_path / "toy-case.md"
    path.write_text(page(f'url: "{FILE}", text: "return_dict=False", in: "<2"'), encoding="utf-8")
    claims = Claims(path, path.name).all()
    assert [(claim.what, claim.by) for claim in claims] == [("trl >=1", ""), ("trl >=2", "anchor")]


@pytest.mark.parametrize(("text", "above"), [("<1.1", "1.1.0"), ("<=1.1", "1.2.0"), (">1.1", "1.2.0"), (">=2", "")])
def test_a_cut_lies_below_the_first_release_of_its_upper_side(text: str, above: str) -> None:
    assert [cut.above(("1.0.0", "1.1.0", "1.2.0")) for cut in Cut.of("trl", text)] == [above]
