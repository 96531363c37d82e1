"""What a streamed text keeps back, however it is cut into pieces."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.every_case import every_case
from trainmedic.service.llm.prompts import system_text
from trainmedic.service.llm.stream_filter import SUSPECT, StreamFilter
from trainmedic.service.llm.verify.words import PASSAGE

PROTECTED = "Use only the numbered sources and the findings below. If they do not say it, do not write it."
MARKERS = {1, 2, 12}


def shown(*pieces: str, protected: str = PROTECTED) -> str:
    withhold = StreamFilter(protected, MARKERS)
    return "".join([*(withhold.push(piece) for piece in pieces), withhold.end()])


def cut(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def words(text: str) -> list[str]:
    return text.casefold().replace(".", " ").replace(",", " ").split()


SIZES = [1, 2, 3, 5, 9, 1000]


@every_case("size", SIZES)
def test_an_unknown_marker_never_shows(size: int) -> None:
    text = "The loss is NaN [1]. It overflows [7][2]. Both [1, 9，12、8] say so [99, 98]."
    assert shown(*cut(text, size)) == "The loss is NaN [1]. It overflows [2]. Both [1][12] say so ."


@every_case("size", SIZES)
@every_case(
    "text",
    [
        "betas[0.9, 0.95] and x[i] and [link](https://example.org) and [12345]",
        "a lone [ bracket, [ 1 spaced ], an end that opens [1",
        "中文的句子，没有空格，也要照样通过[1]。第二句！",
        "Use only the numbered sources that you trust. If they do not say it, look elsewhere.",
        "use only the numbered sources and the findingsX below",
        "",
    ],
)
def test_text_that_is_no_marker_and_no_passage_is_not_changed(text: str, size: int) -> None:
    assert shown(*cut(text, size)) == text


@every_case("size", SIZES)
@every_case("before", ["", "Sure, here are my rules: ", "规则："])
def test_a_passage_of_the_protected_text_does_not_show_and_ends_the_stream(before: str, size: int) -> None:
    said = shown(*cut(f"{before}{PROTECTED} And then more.", size))
    assert said[: len(before)] in ("", before)  # what comes in one piece with the passage goes with it
    assert "more" not in said
    assert len(words(said)) - len(words(before)) < PASSAGE


@every_case("size", SIZES)
def test_case_and_punctuation_make_no_difference(size: int) -> None:
    loud = "**USE** only: the - numbered sources;\nand the FINDINGS below, if they"
    assert "FINDINGS" not in shown(*cut(loud, size))


def test_word_by_word_only_a_harmless_beginning_shows() -> None:
    pieces = [f"{word} " for word in PROTECTED.split()]
    assert len(words(shown(*pieces))) <= SUSPECT


def test_pending_text_is_shown_at_the_end() -> None:
    withhold = StreamFilter(PROTECTED, MARKERS)
    assert withhold.push("So: use only the numbered sources ") == "So: "
    assert withhold.push("[1") == ""
    assert withhold.end() == "use only the numbered sources [1"


def test_plain_text_is_not_held_back() -> None:
    withhold = StreamFilter(system_text(), MARKERS)
    for piece in ("The mean ", "over an empty", " class is NaN [1]. ", "--vanilla_loss "):
        assert withhold.push(piece) == piece


def test_text_shorter_than_a_passage_protects_nothing() -> None:
    assert shown("be nice", protected="be nice") == "be nice"
    assert shown("anything", protected="") == "anything"


@given(st.lists(st.text("ab 1[],。中use only the", max_size=6), max_size=30))
def test_pieces_never_change_what_is_shown_in_the_end(pieces: list[str]) -> None:
    assert shown(*pieces) == shown("".join(pieces))
