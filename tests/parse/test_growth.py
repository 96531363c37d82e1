"""Pastes whose reading once grew with the square of their length, or worse: four times the text, about four times the
work."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.every_case import every_case
from trainmedic.ingest.personal import hidden
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.parse.readers.python_repair import survivors
from trainmedic.kb.parse.text.patterns import bare, begins_sentence, holds_sentence
from trainmedic.kb.parse.text.stretches import Brackets

SHORT, TIMES = 8_000, 4
STEEPEST = TIMES**1.75
"""The square is sixteen times the work; caches and other processes blur four."""
NOTICEABLE_S = 0.25

# File, and what is before, repeated and behind it.
PASTES = (
    (None, "python train.py --lr", " ", "1e-5"), (None, "python train.py --lr 1e-5", " ", "x!"),
    (None, "", "{\n", ""), (None, "", "[\n", ""), (None, "a: ", "eyJ", "1e-5\n"), (None, "a: ", "损失", ""),
    (None, 'a: "', "x", ""), (None, "a: *", "b", ""), (None, "", " ", "a: 1"), (None, "", "./", ""),
    (None, "", "a.", "a=b"), (None, "- ", " ", "x"), (None, "python train.py --lr", "138", "]"),
    (None, "", "> ", "x```"), (None, 'x = "', '\\"', ""), (None, "", "sudo a", ""), (None, "", "A=(A=(", ")"),
    (None, "", "step 1 ", ""), (None, "export A=1\n", "\n", "x"), (None, "", "nan ", ""),
    (None, "", "transformers ", ""), (None, "", "4.4.4 的", ""), (None, "", "qwen-", ""), (None, "", "from 1 to ", ""),
    (None, "", "10x larger ", ""), (None, "", "(ValueError: ", ""), (None, "", "`list index out of range (", ""),
    ("a.log", "", "OVERFLOW! Attempted loss scale: ", ""), ("a.log", "", "argument ", "invalid choice"),
    ("a.log", "", "labels are all ", ""), ("a.yaml", "python train.py --lr", "\t", "x"),
    ("a.py", "for x in loader:\n    f(x)\n    x.backward()\n", "def f(x):\n    f(x)\n", ""),
    ("a.py", "export A=", "|---", ""), ("a.py", "python train.py --lr", "#SBATCH --a\n", ""),
)  # fmt: skip


def seconds(call: Callable[[str], object], text: str) -> float:
    """Processor seconds of one call; a second one with the same text would come from caches."""
    started = time.process_time()
    call(text)
    return time.process_time() - started


@pytest.mark.slow
@every_case(("file", "before", "unit", "behind"), PASTES)
def test_reading_takes_time_in_proportion_to_the_text(file: str | None, before: str, unit: str, behind: str) -> None:
    def read(text: str) -> object:
        return parse(text) if file is None else parse("why?", [Attachment(name=file, content=text)])

    short, long = (before + unit * (length // len(unit)) + behind for length in (SHORT, SHORT * TIMES))
    took = seconds(read, long)
    assert took < NOTICEABLE_S or took < STEEPEST * seconds(read, short)


@pytest.mark.slow
def test_hiding_addresses_takes_time_in_proportion_to_the_text() -> None:
    took = seconds(hidden, "10.0.0.1 " * 4 * SHORT)
    assert took < NOTICEABLE_S or took < STEEPEST * seconds(hidden, "10.0.0.1 " * SHORT)


@every_case("quotes", [40, 4_000])
def test_a_fence_behind_many_quotation_marks_is_found_at_once(quotes: int) -> None:
    assert parse("> " * quotes + "x```").question


def test_the_repair_of_python_is_given_up_and_the_next_text_is_read_from_its_beginning() -> None:
    assert survivors("|---" * 4_000).body == []
    assert len(survivors("x = f(a=1)\ny = [1, 2").body) == 1


@every_case(
    ("line", "code"),
    [
        ("x = {", "x = {"),
        ("x = 'a # b' + \"{\" # {", "x =  +  "),
        ("it's {", "it's {"),
        ('"\\"{\\"', '"\\"{\\"'),
        ("'a' \"b", ' "b'),
    ],
)
def test_code_is_what_is_left_without_strings_and_comments(line: str, code: str) -> None:
    assert bare(line) == code


def test_a_sentence_is_told_by_six_words_or_a_chinese_clause() -> None:
    sentence, clause = "the loss of this run does not fall", "训练后损失为空，怎么办"
    texts = (sentence, clause, f"1: {sentence}", f"x: {clause}", "loss 1.0", "损失", "损失\n，")
    assert [begins_sentence(text) for text in texts] == [True, True, False, False, False, False, False]
    assert [holds_sentence(text) for text in texts[:6]] == [True, True, True, True, False, False]


def test_brackets_are_closed_where_their_level_is_reached_again() -> None:
    lines = ["{", ' "a": [', "  1", " ],", ' "b": {}', "}", "", "the loss of this run does not fall", "["]
    brackets = Brackets(lines)
    assert [brackets.end(at, 0) for at in (0, 1, 4, 8)] == [5, 3, 4, None]
    assert (brackets.interruption(0), brackets.interruption(6)) == (6, None)
    assert (brackets.any_key(0, 5), brackets.any_key(2, 4)) == (True, False)
