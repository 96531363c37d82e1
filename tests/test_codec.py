"""What a process that is not trusted sends: every value comes back as it was, and nothing else can be built."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.every_case import every_case
from tests.incidents import INCIDENTS
from trainmedic.kb.codec import Codec, Malformed, codec_of
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.run import Scalar, Unresolved, Value  # noqa: F401  `Value` is written with it
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.serialization import plain


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Leaf:
    number: float


@dataclass(frozen=True)
class Tree:
    value: Value = None
    leaf: Leaf | None = None
    leaves: tuple[Leaf, ...] = ()
    named: Mapping[str, Leaf] = field(default_factory=lambda: MappingProxyType({}))
    pairs: tuple[tuple[str, int], ...] = ()
    span: tuple[int, int] | None = None
    colour: Colour | None = None
    role: Literal["a", "b"] = "a"


CODEC = codec_of(Tree)
texts = st.text(st.characters(exclude_categories=()), max_size=4)
leaves = st.builds(Leaf, st.floats(allow_nan=False) | st.integers() | st.booleans())
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts | st.builds(Unresolved, texts)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3).map(tuple) | st.dictionaries(texts, inner, max_size=3)
)
trees = st.builds(
    Tree,
    value=values,
    leaf=st.none() | leaves,
    leaves=st.lists(leaves, max_size=3).map(tuple),
    named=st.dictionaries(texts, leaves, max_size=3),
    pairs=st.lists(st.tuples(texts, st.integers()), max_size=3).map(tuple),
    span=st.none() | st.tuples(st.integers(), st.integers()),
    colour=st.none() | st.just(Colour.RED),
    role=st.sampled_from(["a", "b"]),
)


@given(trees)
@settings(deadline=None)
def test_every_value_comes_back_as_it_was(tree: Tree) -> None:
    again = CODEC.decode(CODEC.encode(tree))
    assert again == tree
    assert repr(again.leaf) == repr(tree.leaf), "1 is not 1.0, nor True"


def test_numbers_without_bounds_come_back() -> None:
    huge = 16**5000 + 1
    assert CODEC.decode(CODEC.encode(Tree(huge, Leaf(math.inf)))) == Tree(huge, Leaf(math.inf))
    assert math.isnan(CODEC.decode(CODEC.encode(Tree(leaf=Leaf(math.nan)))).leaf.number)


def test_what_was_one_object_is_one_again() -> None:
    leaf = Leaf(1.0)
    again = CODEC.decode(CODEC.encode(Tree(leaf=leaf, leaves=(leaf, leaf))))
    assert again.leaves[0] is again.leaves[1] is again.leaf


@every_case("incident", INCIDENTS)
def test_the_evidence_of_the_incidents_comes_back(incident: Any) -> None:
    evidence = parse(f"{incident.en}\n{incident.zh}", incident.files)
    codec = codec_of(Evidence)
    assert repr(plain(codec.decode(codec.encode(evidence)))) == repr(plain(evidence))


GOOD = json.loads(CODEC.encode(Tree(leaf=Leaf(1.0), pairs=(("a", 1),))))


def changed(path: tuple[int, ...], value: object) -> bytes:
    message = json.loads(json.dumps(GOOD))
    at = message
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return json.dumps(message).encode()


def every(path: tuple[int, ...], *values: object) -> list[bytes]:
    return [changed(path, value) for value in values]


def test_the_places_that_are_changed_below_are_there() -> None:
    assert GOOD == [[[2, 1.0], [0, None, [0, 0], [], {}, [["a", 1]], None, None, "a"]], 1]
    assert CODEC.decode(json.dumps(GOOD).encode()) == Tree(leaf=Leaf(1.0), pairs=(("a", 1),))


@every_case(
    "data",
    [
        b"",
        b"\x80\x04N.",
        b"\xff",
        b"null",
        b"[]",
        b"[" * 200_000,
        json.dumps(GOOD[:-1]).encode(),
        json.dumps([*GOOD, []]).encode(),
        *every((1,), 0, 2, -1, True, 1.0, None, [1], {}, "1"),
        *every((0, 1, 0), 1, 2, -1, False, "0", None),
        *every((0, 1, 2), 0, [0, 1], [0, -1], [1, 0], [0], [0, 0, 0], [True, 0], [0, [0]]),
        *every((0, 1, 3), [7], [1], {}, None, "ab"),
        *every((0, 1, 4), [], {"a": 1}, None),
        *every((0, 1, 5), [["a", "1"]], [[1, 1]], [["a"]], [["a", 1, 1]], ["a1"]),
        *every((0, 1, 7), "red", [0, "green"], [0, ["red"]]),
        *every((0, 1, 8), "c", ["a"], None),
        *every((0, 0, 1), "1", {"": "zz"}, {"": 7}, {}, {"a": "1"}, None, [1]),
        changed((0, 0), [1]),
        changed((0, 0), [1, 1.0, 1.0]),
        changed((0, 1), 0),
        changed((0,), {}),
    ],
)
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        CODEC.decode(data)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=2), st.lists, max_leaves=30))
def test_no_other_data_does_anything_but_be_refused(message: object) -> None:
    with pytest.raises(Malformed):
        CODEC.decode(json.dumps(message).encode())


@dataclass
class Open:
    value: int


@dataclass(frozen=True)
class Working:
    value: int

    def __post_init__(self) -> None:
        raise AssertionError


@dataclass(frozen=True)
class Vague:
    value: Any


@every_case("kind", [Open, Working, Vague, object, bytes, tuple, Literal[1] | dict[str, int]])
def test_only_plain_data_and_classes_without_code_can_be_sent(kind: Any) -> None:
    with pytest.raises(TypeError):
        Codec(kind)
