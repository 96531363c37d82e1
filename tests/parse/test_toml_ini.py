"""TOML tables and ``key = value`` files are read with positions."""

from __future__ import annotations

from tests.every_case import every_case
from tests.parse.reading import Checked
from trainmedic.kb.parse.readers import ini_file, toml_file
from trainmedic.kb.parse.source import Piece

_CHECKED = Checked(toml_file.read)
read, values, only, codes = _CHECKED.read, _CHECKED.values, _CHECKED.only, _CHECKED.codes


def test_tables_become_dotted_keys() -> None:
    text = '[train]\nlr = 1e-5 # c\na.b = true\nl = [1,\n 2]\n[[ds]]\np = "x"\n[ds.sub]\nq = {r = 1}\n[[ds]]\nd = 2024-01-01\n'  # noqa: E501
    assert values(text) == {
        "train.lr": 1e-5, "train.a.b": True, "train.l": (1, 2), "ds.0.p": "x", "ds.0.sub.q.r": 1, "ds.1.d": "2024-01-01",  # noqa: E501
    }  # fmt: skip
    assert codes(text) == set()


def test_broken_toml_keeps_its_readable_part() -> None:
    assert values('[a\nx = 1\nb = "tru\nc = 3\n') == {"x": 1, "c": 3}
    assert read("x = 1\ny\n").partial
    assert codes("x = 1\nx = 1\n") == {"duplicate_key", "toml_error"}


def test_ini_lines_are_read_with_their_section() -> None:
    reading = ini_file.read(Piece(source=None, text="[DEFAULT]\na = 1 ; c\nb: 'x y'\n# z\n[s]\nc=\nexport D=e\njunk\n"))
    assert [(o.key, o.value, o.span.text) for o in reading.options] == [
        ("a", 1, "a = 1"), ("b", "x y", "b: 'x y'"), ("s.c", None, "c="), ("s.D", "e", "D=e"),
    ]  # fmt: skip
    assert reading.partial
    assert ini_file.read(Piece(source=None, text="a=1\n" * 5000)).partial


def test_of_many_lines_that_are_no_entries_fifty_are_named() -> None:
    junk = "what is this\n" * 80
    assert [p.code for p in read(junk).problems] == ["toml_error"] * 50
    assert [p.code for p in ini_file.read(Piece(source=None, text=junk + "a = 1\n")).problems] == ["ini_error"] * 50
    assert [o.key for o in ini_file.read(Piece(source=None, text=junk + "a = 1\n")).options] == ["a"]


@every_case("value", ["9" * 5_000, "[" * 3_000])
def test_what_no_toml_reader_takes_makes_the_reading_partial(value: str) -> None:
    reading = read(f"lr = 1\na = {value}\n")
    assert reading.partial
    assert reading.options[0].value == 1
    assert {problem.code for problem in reading.problems} == {"toml_error"}


def test_a_key_without_an_end_is_a_problem_and_what_stands_beside_it_is_read() -> None:
    reading = toml_file.read(Piece(source="f", text="lr = 1\n" + "a." * 150 + "b = 2\n"))
    assert [option.value for option in reading.options][:1] == [1]
    assert any("100 parts" in problem.message for problem in reading.problems)
