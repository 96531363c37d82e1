"""Values to JSON."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass
from types import MappingProxyType

import pytest

from tests.incidents import INCIDENTS
from trainmedic.kb.model.report import Severity
from trainmedic.kb.model.report_view import SignalView
from trainmedic.kb.model.run import Unresolved
from trainmedic.kb.serialization import from_json, plain, to_json, to_json_once
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.schema import Answer, SeriesView
from trainmedic.service.dialogue.request import Ask


@dataclass(frozen=True)
class Pair:
    left: object
    right: object = None


def test_a_dataclass_becomes_an_object_with_its_fields_in_order() -> None:
    assert to_json(Pair(1, "二")) == '{"left":1,"right":"二"}'


def test_numbers_that_json_lacks_become_words() -> None:
    assert plain((math.nan, math.inf, -math.inf, 1.5)) == ["nan", "inf", "-inf", 1.5]


def test_a_shell_variable_stays_what_was_written() -> None:
    assert plain(Unresolved("$LR")) == "$LR"


def test_enums_mappings_sets_and_nested_values_are_plain() -> None:
    value = MappingProxyType({"severity": Severity.ERROR, "nested": (Pair(True), frozenset({3}))})
    assert json.loads(to_json(value)) == {"severity": "error", "nested": [{"left": True, "right": None}, [3]]}


def test_half_a_character_and_huge_numbers_are_written_all_the_same() -> None:
    assert json.loads(to_json(["\ud800", 2**70])) == ["\ud800", 2**70]


def test_a_value_that_is_sent_and_stored_is_encoded_once() -> None:
    first, alike = Pair(1), Pair(1)
    assert to_json_once(first) is to_json_once(first)
    assert to_json_once(first) == to_json_once(alike)
    assert to_json_once(first) is not to_json_once(alike)


def test_anything_else_is_shown_as_text() -> None:
    assert plain(1j) == "1j"


def test_an_answer_survives_the_way_to_json_and_back(advisor: Advisor) -> None:
    for incident in INCIDENTS:
        answer = advisor.ask(Ask(question=incident.en, attachments=incident.files))
        assert to_json(from_json(Answer, to_json(answer))) == to_json(answer)


def test_numbers_that_json_lacks_are_numbers_again() -> None:
    series = SeriesView(name="loss", attachment=None, steps=(1, 2), values=(0.5, math.inf))
    assert from_json(SeriesView, to_json(series)) == series
    data = {"kind": "loss_nan", "meaning": "", "value": "nan", "step": 3, "stated": False}
    span = {"attachment": None, "line": 1, "column": 1, "end_line": 1, "end_column": 2, "text": "x"}
    value = from_json(SignalView, json.dumps({**data, "evidence": span})).value
    assert value is not None
    assert math.isnan(value)


def test_a_text_of_another_shape_is_refused_without_repeating_it() -> None:
    for text in ('{"id": "hf_secret"}', "hf_secret", "[]", '{"id": {"hf_secret": 1}}'):
        with pytest.raises(ValueError) as refused:
            from_json(Answer, text)
        assert "hf_secret" not in str(refused.value)


def test_every_field_added_after_the_first_version_has_a_default() -> None:
    required = {field.name for field in dataclasses.fields(Answer) if _lacks_default(field)}
    first = (
        "id conversation_id verdict language mode model answer causes findings citations missing signals run receipt"
    )
    assert required == {*first.split(), "kb_version", "ruleset_version"}


def _lacks_default(field: dataclasses.Field[object]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
