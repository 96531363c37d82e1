"""Values to JSON."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from types import MappingProxyType

from trainmedic.kb.model.report import Severity
from trainmedic.kb.model.run import Unresolved
from trainmedic.kb.serialization import plain, to_json


@dataclass(frozen=True)
class Pair:
    left: object
    right: object = None


def test_a_dataclass_becomes_an_object_with_its_fields_in_order() -> None:
    assert to_json(Pair(1, "二")) == '{"left": 1, "right": "二"}'


def test_numbers_that_json_lacks_become_words() -> None:
    assert plain((math.nan, math.inf, -math.inf, 1.5)) == ["nan", "inf", "-inf", 1.5]


def test_a_shell_variable_stays_what_was_written() -> None:
    assert plain(Unresolved("$LR")) == "$LR"


def test_enums_mappings_sets_and_nested_values_are_plain() -> None:
    value = MappingProxyType({"severity": Severity.ERROR, "nested": (Pair(True), frozenset({3}))})
    assert json.loads(to_json(value)) == {"severity": "error", "nested": [{"left": True, "right": None}, [3]]}


def test_anything_else_is_shown_as_text() -> None:
    assert plain(1j) == "1j"
