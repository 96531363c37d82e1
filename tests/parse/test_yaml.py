"""YAML is read as PyYAML reads it, with positions, and what is broken keeps its readable part."""

from __future__ import annotations

from tests.every_case import every_case
from tests.parse.reading import Checked
from trainmedic.kb.model.run import Unresolved
from trainmedic.kb.parse.readers import yaml_file

_CHECKED = Checked(yaml_file.read)
read, values, only, codes = _CHECKED.read, _CHECKED.values, _CHECKED.only, _CHECKED.codes


def test_values_follow_yaml_1_1() -> None:
    text = "a: 1e-6\nb: off\nc:\nd: 'off'\ne: 1.0e-6\nf: 1:30\ng: ~\nh: 0x1F\ni: 2024-01-01\nj: .nan\nk: 010\nl: = \n"
    found = values(text)
    assert found.pop("j") != found.get("j")
    assert found == {
        "a": "1e-6", "b": False, "c": None, "d": "off", "e": 1e-6, "f": 90, "g": None, "h": 31, "i": "2024-01-01", "k": 8, "l": "=",  # noqa: E501
    }  # fmt: skip


def test_raw_spelling_and_quotation_are_kept() -> None:
    assert (only("b: off", "b").raw, only("b: off", "b").quoted) == ("off", False)
    assert (only("b: 'off'", "b").raw, only("b: 'off'", "b").quoted) == ("off", True)
    span = only("x: 1\nb: &a off # c", "b").value_span
    assert span is not None
    assert (span.text, span.line, span.column) == ("off", 2, 7)


def test_nested_maps_and_lists_become_dotted_keys_and_tuples() -> None:
    text = "z:\n  stage: 3\n  l: [q, v]\nds:\n  - path: x\n    n: [[1], [2]]\ne: {}\n"
    assert values(text) == {"z.stage": 3, "z.l": ("q", "v"), "ds.0.path": "x", "ds.0.n": ((1,), (2,)), "e": {}}


def test_anchors_aliases_and_merge_keys_are_resolved() -> None:
    text = "a: &x {k: 1, j: 2}\nb:\n  <<: [*x]\n  k: 3\nc: &s 5\nd: *s\ne: *nope\n"
    found = values(text)
    assert found == {"a.k": 1, "a.j": 2, "b.j": 2, "b.k": 3, "c": 5, "d": 5, "e": Unresolved("*nope")}


def test_an_alias_bomb_and_deep_nesting_end_with_a_problem() -> None:
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(12)
    )
    assert "too_large" in codes(bomb)
    assert "yaml_error" in codes("a: " + "[" * 5000)


def test_a_tag_is_never_constructed() -> None:
    assert values("a: !!python/name:os.system x\nb: !!int '5'\nc: !!int x\n") == {"a": "x", "b": 5, "c": "x"}
    assert codes("a: !!python/object/apply:os.system ['ls']") == {"yaml_tag"}


def test_both_of_two_equal_keys_are_kept_with_a_problem() -> None:
    assert [option.value for option in read("a: 1\na: 2\n").options] == [1, 2]
    assert codes("a: 1\na: 2\n") == {"duplicate_key"}


def test_every_document_is_read() -> None:
    assert values("a: 1\n---\nb: 2\n") == {"a": 1, "b": 2}


@every_case(
    "text", ['a: 1\nb: "x\nc: 3\nd:\n  e: 4\n', "a: 1\nb: @x\nc: 3\nd:\n  e: 4\n", "a: 1\n b: 2\nc: 3\nd:\n  e: 4\n"]
)
def test_lines_after_an_error_are_read_too(text: str) -> None:
    reading = read(text)
    found = values(text)
    assert reading.partial
    assert (found["a"], found["c"], found["d.e"]) == (1, 3, 4)
    assert "yaml_error" in codes(text)


def test_list_items_after_an_error_are_numbered() -> None:
    assert values("a: @x\nds:\n  - path: p\n    n: 1\n  - path: r\n    l: [1, 2]\n") == {
        "a": "@x", "ds.0.path": "p", "ds.0.n": 1, "ds.1.path": "r", "ds.1.l": (1, 2),
    }  # fmt: skip


def test_full_width_punctuation_is_read_with_a_problem() -> None:
    text = "学习率：1e-5\nlr：  3\nname: “你好”\nl: [a，b]\n"
    assert values(text) == {"学习率": "1e-5", "lr": 3, "name": "你好", "l": ("a", "b")}
    assert only(text, "lr").span.text == "lr：  3"
    assert codes(text) == {"yaml_error"}


def test_tabs_are_read_with_a_problem() -> None:
    assert values("z:\n\tstage: 3\n\tx: 1\n") == {"z.stage": 3, "z.x": 1}
    assert codes("z:\n\tstage: 3\n") == {"yaml_error"}


def test_a_merge_of_nothing_before_an_error_is_read() -> None:
    reading = read("[<<: a: 1\n")
    assert [problem.code for problem in reading.problems] == ["yaml_error"]


@every_case("number", ["9" * 301, "0x" + "f" * 400, "0b" + "1" * 2_000, "1:" * 900 + "1", "-" + "9" * 5_000])
def test_a_whole_number_that_no_float_can_hold_stays_text(number: str) -> None:
    assert yaml_file.scalar(number) == number
    assert yaml_file.scalar("9" * 300) == int("9" * 300)


def test_a_broken_file_of_any_length_is_read_up_to_a_bound() -> None:
    reading = read("a: @x\n" + "".join(f"k{n}: {n}\n" for n in range(6000)))
    assert reading.partial
    assert len(reading.options) == 4000
    assert "too_large" in {problem.code for problem in reading.problems}


def test_nesting_deeper_than_anyone_writes_ends_with_a_problem_and_the_top_is_kept() -> None:
    levels = "".join(f"{' ' * n}k{n}:\n" for n in range(80))
    reading = read(f"lr: 1\n{levels}{' ' * 80}end: 1\n")
    assert reading.options[0].key == "lr"
    assert reading.partial
    assert "yaml_error" in {problem.code for problem in reading.problems}


def test_a_list_of_maps_on_a_line_after_an_error_is_read_with_its_places() -> None:
    text = "a: @x\nds: [{path: p, n: {m: 1}}, {path: r}, []]\n"
    assert values(text) == {"a": "@x", "ds.0.path": "p", "ds.0.n.m": 1, "ds.1.path": "r"}
    assert only(text, "ds.0.n.m").span.text == "m: 1"
    assert values("a: @x\nb: {c: 1}\n")["b"] == "{c: 1}"


def test_a_block_of_text_is_one_value() -> None:
    found = only("system: |\n  You are\n  a helper.\n\nlr: 1\n", "system")
    assert (found.value, found.quoted) == ("You are\na helper.\n", True)
    assert (found.value_span and found.value_span.text) == "|\n  You are\n  a helper."
