"""Anchors name the spot in source that a page rests on, and a program counts what rests on one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.causes.test_page import PAGE
from trainmedic.ingest.authoring.anchored import Claims
from trainmedic.ingest.update.anchors import Spots, problems
from trainmedic.ingest.update.releases import Published
from trainmedic.kb.pages.anchor import Cut, anchors
from trainmedic.kb.pages.page import PageError, read_page
from trainmedic.kb.sources.sources import Sources

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


@pytest.fixture(scope="module")
def spots(tmp_path_factory: pytest.TempPathFactory) -> Spots:
    """A checkout of three releases: the middle one asks for ids alone, as a pull request had it."""
    folder = tmp_path_factory.mktemp("clones") / "trl"
    file = folder / "trl/trainer/sft_trainer.py"
    file.parent.mkdir(parents=True)

    def git(*arguments: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)

    git("init", "-q")
    for version, code in (("0.27.0", "f(x)"), ("0.27.1", "f(x,\n      return_dict=False)"), ("0.28.0", "f(x)")):
        file.write_text(f"class A:\n    def b(self):\n        {code}\n", encoding="utf-8")
        git("add", "-A")
        git("commit", "-qm", f"Change f (#{version[-1]})")
        git("tag", f"v{version}")
    return Spots(Published(Sources(folder.parent / "data", "off"), [folder]))


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (f'url: "{FILE}", text: "f(x, return_dict=False)", symbol: A.b, in: "==0.27.1"', ""),
        (f'url: "{FILE}", text: "f(x, return_dict=False)", in: ">=0.27.1"', "0.28.0: 'f(x, return_dict=False)' is not"),
        (f'url: "{FILE}", text: "return_dict", in: "<0.27.1"', "'return_dict' is not there"),
        (f'url: "{FILE}", text: "f(x", symbol: A.c, in: ">0"', "A.c is not there"),
        (f'url: "{FILE}", text: "f(x"', ""),
        (f'url: "{FILE}", text: ["f(x", "return_dict=False"]', "0.28.0"),
        ('url: "https://github.com/huggingface/trl/pull/1", in: ">=0.27.1"', ""),
        ('url: "https://github.com/huggingface/trl/pull/1", in: ">=0.28"', "came with trl 0.27.1"),
    ],
)
def test_an_anchor_holds_in_the_releases_of_its_range_and_in_no_other(spots: Spots, source: str, problem: str) -> None:
    found = list(problems(spots, anchors(read_page(page(source), "toy-case.md")[1])))
    assert [is_broken for _, _, is_broken in found] == [True] * bool(problem)
    assert all(problem in why for _, why, _ in found)


def test_what_cannot_be_read_is_said_to_be_unread(spots: Spots) -> None:
    other = FILE.replace("huggingface/trl", "huggingface/peft")
    found = problems(spots, anchors(read_page(page(f'url: "{other}", text: x'), "toy-case.md")[1]))
    assert [is_broken for _, _, is_broken in found] == [False]


@pytest.mark.parametrize(
    "source",
    [
        f'url: "{FILE}", says: source, text: "return_dict=False)", in: ">=0.27.1,<0.28.0"',
        'url: "https://github.com/huggingface/trl/pull/1", says: source, in: ">=0.27.1"',
    ],
)
def test_a_line_or_a_change_that_came_at_a_bound_anchors_it(tmp_path: Path, source: str) -> None:
    path = tmp_path / "toy-case.md"
    bound = PAGE.replace(">=1.0,<2.0", ">=0.27.1").replace('fixed: {trl: "2.0"}\neffect: silent\n', "")
    head, _, rest = bound.partition("sources:")
    listed = f"sources:\n  - {{{source}}}\nrefutations"
    path.write_text(f"{head}{listed}{rest.partition('refutations')[2]}", encoding="utf-8")
    assert [claim.by for claim in Claims(path, path.name).all()] == ["anchor"]
