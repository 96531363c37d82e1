"""What every reader of user text promises: no error, true positions, all that can be read, in linear time."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.every_case import every_case
from tests.parse.reading import true_span
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.run import Option
from trainmedic.kb.parse.logs import rows, tracebacks
from trainmedic.kb.parse.readers import (
    argv,
    dump,
    ini_file,
    json_file,
    python_script,
    shell,
    toml_file,
    versions,
    yaml_file,
)
from trainmedic.kb.parse.source import Piece, Reading

FORMATS = tomllib.loads(Path(__file__).with_name("formats.toml").read_text(encoding="utf-8"))
REPEATED = ["[", "{", "(", '"', "'", "a(", "{'a':", "- ", "-", "a: ", "a=", "a.", "[a]\n", "\t", "\\", "&a ", "x = [\n"]


@dataclass(frozen=True)
class Outcome:
    """What a reader made of a text, whatever the reader."""

    options: tuple[Option, ...]
    spans: tuple[Span | None, ...]


def spans_of(options: tuple[Option, ...]) -> Iterator[Span | None]:
    for option in options:
        yield from (option.span, option.key_span, option.value_span)


def of_reading(read: Callable[[Piece], Reading]) -> Callable[[Piece], Outcome]:
    def outcome(piece: Piece) -> Outcome:
        reading = read(piece)
        problems = (problem.span for problem in reading.problems)
        return Outcome(reading.options, (*spans_of(reading.options), *problems))

    return outcome


def of_commands(commands: tuple[shell.Command, ...]) -> Outcome:
    options = tuple(option for command in commands for option in command.options)
    return Outcome(options, (*spans_of(options), *(command.span for command in commands)))


def of_script(piece: Piece) -> Outcome:
    script = shell.read(piece)
    outcome = of_commands(script.commands)
    problems = (problem.span for problem in script.problems)
    return Outcome(outcome.options, (*outcome.spans, *problems, *spans_of(script.exports)))


def of_rows(piece: Piece) -> Outcome:
    logged, problems = rows.read(piece)
    metrics = (metric.span for row in logged for metric in row.metrics.values())
    return Outcome((), (*(row.span for row in logged), *metrics, *(problem.span for problem in problems)))


READERS: dict[str, Callable[[Piece], Outcome]] = {
    "yaml": of_reading(yaml_file.read),
    "json": of_reading(json_file.read),
    "toml": of_reading(toml_file.read),
    "ini": of_reading(ini_file.read),
    "python": of_reading(python_script.read),
    "dump": of_reading(dump.read),
    "shell": of_script,
    "argv": lambda piece: of_commands(argv.read(piece)),
    "rows": of_rows,
    "traceback": lambda piece: Outcome((), tuple(one.span for one in tracebacks.read(piece))),
    "versions": lambda piece: Outcome((), tuple(fact.span for fact in versions.read(piece))),
}
WITH_EXAMPLE = [name for name in READERS if "whole" in FORMATS[name]]


def read(name: str, text: str) -> Outcome:
    """Read ``text`` and check that every span holds the text that is at its place."""
    outcome = READERS[name](Piece(source="f", text=text))
    for span in outcome.spans:
        assert span is None or true_span(span, text)
    return outcome


@pytest.mark.parametrize("name", READERS)
@given(text=st.text(max_size=200))
def test_any_text_is_read_without_an_error(name: str, text: str) -> None:
    read(name, text)


@pytest.mark.parametrize("name", READERS)
@given(data=st.data())
def test_any_mixture_of_its_own_syntax_is_read_without_an_error(name: str, data: st.DataObject) -> None:
    read(name, "".join(data.draw(st.lists(st.sampled_from(FORMATS[name]["parts"]), max_size=25))))


@every_case("name", WITH_EXAMPLE)
def test_options_are_in_the_order_of_the_text_and_their_spans_read_back(name: str) -> None:
    options = read(name, FORMATS[name]["whole"]).options
    own = [option for option in options if option.scope != "env"]  # a command's environment comes first
    assert len(own) > 2
    places = [(option.key_span.line, option.key_span.column) for option in own]
    assert places == sorted(places)
    for option in options:
        assert option.value_span is not None
        assert option.key.rpartition(".")[2] == option.key_span.text.strip("'\"").rpartition(".")[2]
        assert option.raw is not None
        assert option.raw in option.value_span.text


@every_case("name", WITH_EXAMPLE)
def test_cut_off_anywhere_everything_before_the_cut_is_kept(name: str) -> None:
    whole: str = FORMATS[name]["whole"]
    options = read(name, whole).options
    for cut in range(len(whole) + 1):
        complete = {o.key: o.value for o in options if o.span.end_line < whole[:cut].count("\n")}
        kept = {option.key: option.value for option in read(name, whole[:cut]).options}
        assert {key: kept.get(key, "missing") for key in complete} == complete


@pytest.mark.slow
@every_case("name", READERS)
def test_hostile_repetition_takes_linear_time(name: str) -> None:
    for part in (*REPEATED, *FORMATS[name].get("repeated", ())):
        for before in {"", FORMATS[name].get("whole", "")}:
            assert grows_linearly(name, before, part), (before, part)


def grows_linearly(name: str, before: str, part: str) -> bool:
    """Whether eight times the text costs far less than 64 times the processor time.

    Only the ratio counts, so a slow machine does not fail. A slow moment may: three tries.
    """

    def seconds(size: int) -> float:
        piece = Piece(source="f", text=before + part * (size // len(part)))
        began = time.thread_time()
        READERS[name](piece)
        return time.thread_time() - began

    return any(seconds(20_000) < 28 * max(seconds(2_500), 0.002) for _ in range(3))
