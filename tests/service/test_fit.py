"""Fitting the ranking: what the weights learn, what they must never learn, and that it can be repeated."""

from __future__ import annotations

import numpy as np
import pytest

from service.features import NAMES
from service.fit import AGAINST, fit, probabilities, to_text
from service.weights import Weights, from_json, shipped

FIRED = NAMES.index("rule_fired")
CLASH = NAMES.index("framework_clash")


def table(rows: list[tuple[float, float, float]]) -> tuple[np.ndarray, np.ndarray]:
    """Rows of (rule_fired, framework_clash, right)."""
    x = np.zeros((len(rows), len(NAMES)))
    for number, (fired, clash, _) in enumerate(rows):
        x[number, FIRED], x[number, CLASH] = fired, clash
    return x, np.array([right for *_, right in rows])


def test_a_fired_rule_gets_weight_and_a_clash_loses_it() -> None:
    x, y = table([(1, 0, 1), (0, 0, 0), (1, 0, 1), (0, 1, 0), (0, 0, 0), (0, 1, 0)])
    weights, bias = fit(x, y, [[0, 1], [2, 3], [4, 5]])
    assert weights[FIRED] > 1
    assert weights[CLASH] <= 0
    assert bias < 0


def test_no_data_can_teach_that_a_clash_speaks_for_a_case() -> None:
    x, y = table([(0, 1, 1), (0, 0, 0)] * 4)
    weights, _ = fit(x, y, [[n, n + 1] for n in range(0, 8, 2)])
    assert weights[CLASH] == 0


def test_candidates_of_one_question_share_one_probability_with_none_of_them() -> None:
    p = probabilities(np.zeros((3, len(NAMES))), np.array([0, 0, 1]), np.zeros(len(NAMES)), 0.0, 2)
    assert p == pytest.approx([1 / 3, 1 / 3, 1 / 2])


def test_fitting_twice_gives_the_same() -> None:
    x, y = table([(1, 0, 1), (0, 1, 0)] * 3)
    questions = [[n, n + 1] for n in range(0, 6, 2)]
    first, second = fit(x, y, questions), fit(x, y, questions)
    assert np.array_equal(first[0], second[0])
    assert first[1] == second[1]


def test_written_weights_are_read_as_they_were() -> None:
    text = to_text(np.arange(len(NAMES), dtype=float), -1.0, (0.5, 0.9, 0.6), "a note")
    read = from_json(text)
    assert read.weights[NAMES[3]] == 3.0
    assert (read.answer, read.high, read.medium) == (0.5, 0.9, 0.6)


def test_the_shipped_weights_have_the_signs_they_must_have() -> None:
    weights = shipped()
    for name in NAMES:
        value = weights.weights[name]
        assert value <= 0 if name in AGAINST else value >= 0, name
    assert 0 < weights.medium <= weights.high <= 1


def test_a_clear_lead_is_likely_and_many_equals_are_not() -> None:
    weights = Weights(
        bias=0.0,
        weights=dict.fromkeys(NAMES, 1.0),
        answer=0.5,
        high=0.9,
        medium=0.6,
        plausible=0.1,
        field=1.0,
    )
    strong, weak = dict.fromkeys(NAMES, 0.3), dict.fromkeys(NAMES, 0.0)
    lead, _ = weights.probabilities([strong, weak])
    assert lead > 0.9
    assert max(weights.probabilities([weak] * 9)) == pytest.approx(0.1)
    assert weights.confidence(lead) == "high"
    assert weights.confidence(0.7) == "medium"
    assert weights.confidence(0.1) == "low"
