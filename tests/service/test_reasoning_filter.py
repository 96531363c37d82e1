"""What a model thinks aloud is left out, however its text is cut into pieces."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.every_case import every_case
from trainmedic.service.llm.reasoning_filter import ReasoningFilter, without_reasoning

SIZES = [1, 2, 3, 7, 1000]
NAMED = "The tag `<think>` opens a block, `</think>` closes it."


def shown(text: str, size: int, *, opened: bool = False, whole: bool = True) -> str:
    """What a reader has in the end, who forgets what turns out to have been thought."""
    thoughts = ReasoningFilter(opened=opened)
    said = ""
    for start in range(0, len(text), size):
        piece = thoughts.push(text[start : start + size])
        said = piece if thoughts.orphaned else said + piece
        thoughts.orphaned = False
    return said + thoughts.end(whole=whole)


@every_case("size", SIZES)
@every_case(
    ("text", "left"),
    [
        ("<think>Let me see.</think>\n\nIt overflows [1].", "It overflows [1]."),
        ("  <THINKING>a\nb</THINKING>It overflows.", "It overflows."),
        ("[THINK]hm[/THINK]It overflows.", "It overflows."),
        ("One. <think>hm</think>Two. <think></think>Three.", "One. Two. Three."),
        ("One. <think>never closed", "One. "),
        ("<think>never closed </thin", ""),
        ("it was all thought</think>\nThe answer.", "The answer."),
        (NAMED, NAMED),
        ("So:\n```\n<think>x</think>\n```\nEnd. <think>y</think>", "So:\n```\n<think>x</think>\n```\nEnd. "),
        ("a < b and <thing> and [1] and <", "a < b and <thing> and [1] and <"),
        ("", ""),
    ],
)
def test_reasoning_blocks_are_removed(text: str, left: str, size: int) -> None:
    assert shown(text, size) == left
    assert without_reasoning(text) == left


@every_case("size", SIZES)
def test_if_the_prompt_opens_the_block_nothing_shows_before_it_is_closed(size: int) -> None:
    thoughts = ReasoningFilter(opened=True)
    text = "Let me see. The loss"
    assert "".join(thoughts.push(text[n : n + size]) for n in range(0, len(text), size)) == ""
    assert thoughts.push("</think>\n\nIt overflows.") == "It overflows."
    assert not thoughts.orphaned
    assert thoughts.end() == ""


@every_case("size", SIZES)
def test_a_complete_text_that_closes_no_block_was_no_reasoning(size: int) -> None:
    assert shown("It overflows [1].", size, opened=True) == "It overflows [1]."
    assert shown("It overflows and", size, opened=True, whole=False) == ""


def test_if_the_server_separates_reasoning_the_text_shows_at_once() -> None:
    thoughts = ReasoningFilter(opened=True)
    thoughts.apart()
    assert thoughts.push("It overflows.") == "It overflows."


def test_plain_text_is_not_held_back() -> None:
    thoughts = ReasoningFilter()
    for piece in ("The mean", " over <b>", " [1]", " x < 3", ".\n"):
        assert thoughts.push(piece) == piece


@given(st.lists(st.sampled_from(["<think>", "</think>", "<thi", "nk>", "a ", "`", "\n", "```\n", "[1]"]), max_size=14))
def test_pieces_never_change_what_is_shown_in_the_end(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert {shown(text, size) for size in (1, 2, 5)} == {without_reasoning(text)}
