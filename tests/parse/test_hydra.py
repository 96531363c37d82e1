"""Overrides and values of command lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.every_case import every_case
from trainmedic.kb.model.run import Option, Origin, Unresolved, Value
from trainmedic.kb.parse.readers import hydra, shell
from trainmedic.kb.parse.source import Piece


def override(text: str) -> Option:
    command = shell.read(Piece(source=None, text=f"python -m verl.trainer.main_ppo {text}\n")).commands[0]
    return command.options[-1]


@every_case(
    ("text", "value"),
    [
        ("5", 5),
        ("-1", -1),
        ("1_000", 1000),
        ("1e-6", 1e-6),
        ("1.", 1.0),
        (".5", 0.5),
        ("1e5", 1e5),
        ("True", True),
        ("false", False),
        ("None", None),
        ("null", None),
        ("none", "none"),
        ("no", "no"),
        ("bf16", "bf16"),
        ("1e", "1e"),
        ('{"stage": 3}', {"stage": 3}),
        ("[1, [2, null]]", (1, (2, None))),
        ("{broken", "{broken"),
        ("0,1", "0,1"),
        ("[" * 5000, "[" * 5000),
        ("9" * 500, "9" * 500),
    ],
)
def test_command_line_text_has_the_type_it_looks_like(text: str, value: Value) -> None:
    assert hydra.typed(text) == value
    assert type(hydra.typed(text)) is type(value)


@every_case(
    ("text", "value"),
    [
        ("null", None), ("1e-6", 1e-6), ("[a,b]", ("a", "b")), ("['a b', 'c']", ("a b", "c")),
        ("{a:1,b:[x,{c:2}]}", {"a": 1, "b": ("x", {"c": 2})}), ("'text'", "text"), ("[]", ()), ("{}", {}),
        ("[1,", "[1,"), ("{a}", "{a}"), ("[a]b", "[a]b"), ("[[[", "[[["), ("a,b", "a,b"),
        ("${data.path}", Unresolved("${data.path}")), ("['open", "['open"), ("[ 1 , 2 ]", (1, 2)), ("{a: {", "{a: {"),
        ("[1,,2]", "[1,,2]"),
    ],
)  # fmt: skip
def test_hydra_values(text: str, value: Value) -> None:
    assert hydra.value_of(text) == value


def test_too_deep_a_nesting_stays_text() -> None:
    text = "[" * 100 + "]" * 100
    assert hydra.value_of(text) == text


@every_case(
    ("text", "key", "raw", "value"),
    [
        ("trainer.nnodes=2", "trainer.nnodes", "2", 2), ("+data.filter=true", "data.filter", "true", True),
        ("++a.b=[1,2]", "a.b", "[1,2]", (1, 2)), ("~trainer.logger", "trainer.logger", "~", None),
        ("'a.b=\"x y\"'", "a.b", "x y", "x y"), ("a.b='[x,y]'", "a.b", "[x,y]", ("x", "y")),
        ("a.b=$HOME/x", "a.b", "$HOME/x", Unresolved("$HOME/x")), ("a.b=", "a.b", "", ""),
    ],
)  # fmt: skip
def test_an_override_is_an_option(text: str, key: str, raw: str, value: Value) -> None:
    option = override(text)
    assert (option.key, option.raw, option.value, option.origin) == (key, raw, value, Origin.HYDRA)
    assert option.key_span.text == key


@given(st.text(alphabet="[]{}:,'\"a1$ =+~.", max_size=30))
def test_any_value_can_be_read(text: str) -> None:
    hydra.value_of(text)
    hydra.typed(text)


def test_a_whole_number_that_no_float_can_hold_stays_text() -> None:
    assert hydra.scalar("9" * 301) == "9" * 301
    assert hydra.scalar("9" * 300) == int("9" * 300)
