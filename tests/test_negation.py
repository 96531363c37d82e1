"""Negation around a place in a text, in English and Chinese."""

from __future__ import annotations

from tests.every_case import every_case
from trainmedic.kb.negation import ADVICE, LOG_LINE, RUN, SETUP


@every_case(
    ("text", "word", "negated"),
    [
        ("there is no nan in the log", "nan", True),
        ("没有 nan", "nan", True),
        ("the loss is fine but nan in eval", "nan", False),
        ("not only nan", "nan", False),
        ("no, it is nan", "nan", False),
        ("file_not_found, then nan", "nan", False),
        ("key not_found nan", "nan", False),
    ],
)
def test_a_negation_reaches_to_the_end_of_its_clause(text: str, word: str, negated: bool) -> None:
    assert RUN.precedes(text, text.index(word)) is negated


def test_a_negation_before_the_floor_belongs_to_what_came_before() -> None:
    text = "no lora packing"
    assert SETUP.precedes(text, text.index("packing"))
    assert not SETUP.precedes(text, text.index("packing"), floor=len("no lora"))


@every_case(("text", "negated"), [("packing is off", True), ("packing, lora is off", False)])
def test_a_part_of_the_set_up_may_be_negated_behind_its_name(text: str, negated: bool) -> None:
    assert SETUP.follows(text, len("packing")) is negated


@every_case(
    ("text", "negated"), [("lowering it does not help", True), ("不妨降低学习率", False), ("降低学习率没有用", True)]
)
def test_advice_is_negated_anywhere_in_its_clause(text: str, negated: bool) -> None:
    assert ADVICE.within(text) is negated


def test_a_warning_that_is_gone_is_negated() -> None:
    assert LOG_LINE.within("the checkpoint warning is gone")
    assert not LOG_LINE.within("the checkpoint warning is back")
