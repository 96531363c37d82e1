"""JSON is read with positions, tolerantly, as far as it goes."""

from __future__ import annotations

from tests.every_case import every_case
from tests.parse.reading import Checked
from trainmedic.kb.parse.readers import json_file

_CHECKED = Checked(json_file.read)
read, values, only, codes = _CHECKED.read, _CHECKED.values, _CHECKED.only, _CHECKED.codes


def test_nested_keys_are_dotted_and_typed() -> None:
    text = '{"bf16": {"enabled": "auto"}, "l": [1, 2.5, true], "o": {}, "ds": [{"p": null}]}'
    assert values(text) == {"bf16.enabled": "auto", "l": (1, 2.5, True), "o": {}, "ds.0.p": None}
    assert codes(text) == set()


@every_case(
    "text",
    [
        '{"a": 1, // c\n"b": 2}',
        '{"a": 1, "b": 2,}',
        "{'a': 1, 'b': 2}",
        '{"a": 1 /* x */, "b": 2}',
        '{"a"： 1， "b": 2}',
    ],
)
def test_what_is_not_strict_is_read_with_a_problem(text: str) -> None:
    assert values(text) == {"a": 1, "b": 2}
    assert codes(text) == {"json_error"}


def test_half_a_value_is_left_out_and_the_reading_is_partial() -> None:
    for text in ('{"a": 1, "b": "au', '{"a": 1, "b": 5', '{"a": 1, "b":', '{"a": 1, "b'):
        assert values(text) == {"a": 1}
        assert read(text).partial


def test_a_body_without_its_brace_is_read() -> None:
    assert values('"a": 1,\n"b": 2\n}') == {"a": 1, "b": 2}
    assert read('"a": 1\n').partial


def test_log_history_is_not_configuration() -> None:
    text = '{"log_history": [' + '{"loss": [1.5], "x": "]"},\n' * 5000 + '{}], "epoch": 2, "log_history": 5}'
    assert values(text) == {"epoch": 2}
    assert values('{"a": 1, "log_history": [{"x"') == {"a": 1}


def test_too_many_options_end_with_a_problem() -> None:
    assert "json_error" in codes("[" + "1," * 30000 + "]")
    assert "too_large" in codes("{" + ",".join(f'"k{i}": 1' for i in range(5000)) + "}")


def test_escapes_are_read() -> None:
    assert values(r'{"a": "x\n\u4f60\"", "q\\": 1}')["a"] == 'x\n你"'


def test_a_whole_number_that_no_float_can_hold_stays_text() -> None:
    found = values('{"lr": ' + "9" * 5_000 + ', "b": ' + "9" * 300 + "}")
    assert found == {"lr": "9" * 5_000, "b": int("9" * 300)}


def test_an_endless_stream_of_lists_is_read_up_to_a_bound() -> None:
    reading = read("[1]\n" * 20_000)
    assert reading.partial
    assert [problem.code for problem in reading.problems] == ["json_error"]


@every_case(
    "text",
    [
        "{" + ", ".join(f'"k{n}": {{"a": 1}}' for n in range(5000)) + "}",
        "[" + ", ".join('{"a": 1}' for _ in range(5000)) + "]",
    ],
)
def test_that_there_is_more_than_is_read_is_said_once(text: str) -> None:
    reading = read(text)
    assert len(reading.options) == 4000
    assert [problem.code for problem in reading.problems] == ["too_large"]
    assert reading.partial


def test_digits_of_other_scripts_are_numbers() -> None:
    assert values('{"a": ٣, "b": ٣.٥, "c": ३e-٢}') == {"a": 3, "b": 3.5, "c": 0.03}


def test_a_bracket_that_is_missing_inside_is_said_and_costs_nothing_else() -> None:
    assert values('\n{"a": [1, 2}, "b": 3}')["a"] == (1, 2)
    assert codes('\n{"a": [1, 2}') == {"json_error"}
    assert values('[{"a": 1]') == {"0.a": 1}
