"""Looking into source: every result says where it is, and no search goes on for ever."""

from __future__ import annotations

import pytest

from tests.every_case import every_case
from trainmedic.kb.errors import InvalidRequest, NotFound
from trainmedic.kb.sources.search import Lines, diff, find, symbol
from trainmedic.kb.sources.tree import SourceTree, tree_of

OLD = '''\
import os

LIMIT = 3


class Config:
    """Settings."""

    size: int = 256

    @property
    def half(self) -> int:
        return self.size // 2


if os.name == "nt":
    def where() -> str: return "here"
'''
NEW = OLD.replace("256", "512").replace("import os\n", "import os\nimport sys\n")


def tree(text: str, version: str) -> SourceTree:
    return tree_of("tiny", version, "wheel", {"tiny/__init__.py": b"", "tiny/config.py": text.encode()})


def test_a_search_gives_the_lines_and_where_they_are() -> None:
    found = find(tree(OLD, "1.0"), r"size: int = \d+")
    assert found.complete
    assert found.matches == (
        Lines(package="tiny", version="1.0", path="tiny/config.py", first=9, text="    size: int = 256"),
    )


def test_a_search_is_bounded_by_matches_and_time_and_says_so() -> None:
    assert find(tree(OLD, "1.0"), "e", most=2).complete is False
    assert len(find(tree(OLD, "1.0"), "e", most=2).matches) == 2
    assert find(tree(OLD, "1.0"), "nowhere", seconds=-1).complete is False
    assert find(tree(OLD, "1.0"), "e", below="other/").matches == ()


@every_case(
    "pattern",
    [
        "(",
        "(a+)+$",
        "(a*)*b",
        "([a-z]+){3,}",
        "(a|a)*b",
        r"(?:\w|\d(x))+!",
        "((a+)b?)*",
        ".*.*.*x",
        "x" * 301,
        "a{99999999999}",
    ],
)
def test_a_pattern_that_is_wrong_or_may_take_for_ever_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidRequest):
        find(tree("a" * 300 + "\n", "1.0"), pattern)


@every_case(
    "pattern",
    [
        "size",
        r"[)+(*]*e",
        r"\(self\)+",
        "(size|half)",
        "(?:si)+ze",
        "s.*:.*",
        r"(\|x)*size",
        "^ +size",
        r"size: int",
        r"def half\(self\)",
        "si.e",
        r"half\b",
    ],
)
def test_other_patterns_are_searched_for(pattern: str) -> None:
    assert find(tree(OLD, "1.0"), pattern).matches


def test_lines_are_counted_as_python_counts_them() -> None:
    text = "a = '\x0c\x0b'\r\nb = 2\rc = 3\n"
    assert [find(tree(text, "1.0"), name).matches[0].first for name in "abc"] == [1, 2, 3]
    assert symbol(tree(text, "1.0"), "tiny.config", "c").first == 3


@every_case(
    ("module", "name", "first", "last", "start"),
    [
        ("tiny.config", "Config", 6, 13, "class Config:"),
        ("tiny/config.py", "Config.half", 11, 13, "    @property"),
        ("tiny.config", "Config.size", 9, 9, "    size"),
        ("tiny.config", "LIMIT", 3, 3, "LIMIT = 3"),
        ("tiny.config", "where", 17, 17, "    def where"),
        ("tiny.config", "", 1, 17, "import os"),
        ("tiny", "", 1, 1, ""),
    ],
)
def test_a_symbol_is_given_with_its_lines(module: str, name: str, first: int, last: int, start: str) -> None:
    lines = symbol(tree(OLD, "1.0"), module, name)
    assert (lines.first, lines.last) == (first, last)
    assert lines.text.startswith(start)


def test_what_is_not_there_is_said_with_the_nearest() -> None:
    with pytest.raises(NotFound) as caught:
        symbol(tree(OLD, "1.0"), "tiny.config", "Config.hlaf")
    assert caught.value.hint == "did you mean Config.half?"
    with pytest.raises(NotFound) as caught:
        symbol(tree(OLD, "1.0"), "tiny.confg")
    assert caught.value.hint == "did you mean tiny.config?"


def test_a_file_of_another_language_version_has_no_symbols() -> None:
    with pytest.raises(NotFound):
        symbol(tree("print 'x'\n", "1.0"), "tiny.config", "x")


def test_a_difference_has_the_line_numbers_of_both_releases() -> None:
    found = diff(tree(OLD, "1.0"), tree(NEW, "1.1"), "tiny.config", "Config")
    assert (found.before and found.before.first, found.after and found.after.first) == (6, 7)
    assert found.text.splitlines()[:3] == [
        "--- tiny 1.0: tiny/config.py",
        "+++ tiny 1.1: tiny/config.py",
        "@@ -6,7 +7,7 @@",
    ]
    assert "-    size: int = 256\n+    size: int = 512\n" in found.text


def test_what_did_not_change_has_no_difference() -> None:
    assert diff(tree(OLD, "1.0"), tree(NEW, "1.1"), "tiny.config", "Config.half").text == ""


def test_a_symbol_that_one_release_lacks_is_all_new_or_all_gone() -> None:
    found = diff(tree(OLD, "1.0"), tree(OLD + "\n\nMORE = 1\n", "1.1"), "tiny.config", "MORE")
    assert (found.before, found.after and found.after.first) == (None, 20)
    assert found.text.endswith("@@ -0,0 +20,1 @@\n+MORE = 1\n")
    with pytest.raises(NotFound):
        diff(tree(OLD, "1.0"), tree(NEW, "1.1"), "tiny.config", "LESS")
