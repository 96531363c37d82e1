"""Fitting the ranking: what the weights learn, what they must never learn, and that it can be repeated."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from trainmedic.service.ranking.features import AGAINST, EITHER, NAMES, NONE_NAMES
from trainmedic.service.ranking.weights import Weights, from_json, shipped
from trainmedic.ui.evaluation.fit import SURE, Fit, Sample, Thresholds, Top, fit, folds_of, thresholds, to_text

FIRED = NAMES.index("rule_fired")
CLASH = NAMES.index("framework_clash")
VAGUE = NONE_NAMES.index("vague")
FLAT = Fit(weights=np.zeros(len(NAMES)), bias=0.0, none=np.zeros(len(NONE_NAMES)))


def sample(*questions: Sequence[tuple[float, float, float]], vague: tuple[float, ...] = ()) -> Sample:
    """Questions of candidates (rule_fired, framework_clash, right); ``vague`` of each question, 0 where not given."""
    rows = [(number, row) for number, rows in enumerate(questions) for row in rows]
    x = np.zeros((len(rows), len(NAMES)))
    z = np.zeros((len(questions), len(NONE_NAMES)))
    for place, (_, (fired, clash, _)) in enumerate(rows):
        x[place, FIRED], x[place, CLASH] = fired, clash
    z[: len(vague), VAGUE] = vague
    return Sample(
        candidates=x,
        right=np.array([row[2] for _, row in rows]),
        owner=np.array([number for number, _ in rows], np.int64),
        questions=z,
        groups=tuple(f"family-{number}" for number in range(len(questions))),
    )


def test_a_fired_rule_gets_weight_and_a_clash_loses_it() -> None:
    found = fit(sample(*([[(1, 0, 1), (0, 0, 0)], [(1, 0, 1), (0, 1, 0)], [(0, 0, 0), (0, 1, 0)]] * 4)), FLAT)
    assert found.weights[FIRED] > 0.5
    assert found.weights[CLASH] <= 0
    assert found.bias < 0


def test_no_data_can_teach_that_a_clash_speaks_for_a_case() -> None:
    found = fit(sample(*([[(0, 1, 1), (0, 0, 0)]] * 4)), FLAT)
    assert found.weights[CLASH] == 0


def test_vague_questions_without_a_cause_teach_that_vagueness_speaks_for_none() -> None:
    rows = [(1.0, 0.0, 0.0), (0.0, 0.0, 0.0)]
    clear = [(1.0, 0.0, 1.0), (0.0, 0.0, 0.0)]
    found = fit(sample(*[clear, rows] * 40, vague=(0, 1) * 40), FLAT)
    assert found.none[VAGUE] > 0.3


def test_candidates_of_one_question_share_one_probability_with_none_of_them() -> None:
    even = Fit(weights=np.zeros(len(NAMES)), bias=0.0, none=np.zeros(len(NONE_NAMES)))
    p = even.probabilities(sample([(0, 0, 0), (0, 0, 0)], [(0, 0, 0)]))
    assert p == pytest.approx([1 / 3, 1 / 3, 1 / 2])


def test_a_family_is_left_out_as_a_whole() -> None:
    groups = ["trl", "verl", "trl", "peft", "verl", "trl"]
    folds = folds_of(groups)
    assert sorted(number for _, left_out in folds for number in left_out) == list(range(len(groups)))
    for inside, left_out in folds:
        assert not {groups[n] for n in inside} & {groups[n] for n in left_out}


def tops(*pairs: tuple[float, bool]) -> list[Top]:
    return [Top(probability=p, right=right, likelihood=p) for p, right in pairs]


def test_the_answer_threshold_keeps_out_what_must_not_be_answered() -> None:
    limits = thresholds(tops(*[(0.6, True), (0.9, True)] * 20), tops((0.5, False)))
    assert 0.5 < limits.answer <= 0.6
    assert limits.medium <= limits.high


def test_what_is_answered_with_low_confidence_is_no_claim() -> None:
    with_cause = tops(*[(0.45, True), (0.45, True), (0.45, True), (0.45, True), (0.45, False), (0.9, True)] * 60)
    claimed, unclaimed = (tops((chance, False), *[(0.1, False)] * 9) for chance in (0.5, 0.42))
    assert thresholds(with_cause, claimed).answer == thresholds(with_cause, unclaimed).answer < 0.42
    assert thresholds(with_cause, claimed).medium == thresholds(with_cause, claimed).high
    assert 0.42 < thresholds(with_cause, unclaimed).medium <= 0.45


def test_a_word_is_only_given_from_where_it_is_earned() -> None:
    limits = thresholds(tops(*[(0.9, True)] * 60, *[(0.7, False), (0.7, False), (0.7, True)] * 2), tops((0.1, False)))
    assert 0.7 < limits.high <= 0.9
    assert limits.medium == limits.high


def test_a_few_right_answers_in_a_row_are_not_sure() -> None:
    assert thresholds(tops(*[(0.9, True)] * 19), tops((0.1, False))).high == SURE


def test_written_weights_are_read_as_they_were() -> None:
    found = Fit(weights=np.arange(len(NAMES), dtype=float), bias=-1.0, none=np.arange(len(NONE_NAMES), dtype=float))
    read = from_json(to_text(found, Thresholds(answer=0.5, high=0.9, medium=0.6), "a note"))
    assert read.weights[NAMES[3]] == 3.0
    assert read.none[NONE_NAMES[2]] == 2.0
    assert (read.answer, read.high, read.medium) == (0.5, 0.9, 0.6)


def test_the_shipped_weights_have_the_signs_they_must_have() -> None:
    weights = shipped()
    for name in [name for name in NAMES if name not in EITHER]:
        value = weights.weights[name]
        assert value <= 0 if name in AGAINST else value >= 0, name
    assert 0 < weights.medium <= weights.high <= 1


def test_a_clear_lead_is_likely_and_many_equals_are_not() -> None:
    weights = Weights(
        bias=0.0,
        weights=dict.fromkeys(NAMES, 1.0),
        none=dict.fromkeys(NONE_NAMES, 0.0),
        answer=0.5,
        artefact=0.5,
        high=0.9,
        medium=0.6,
        plausible=0.1,
        field=1.0,
    )
    strong, weak = dict.fromkeys(NAMES, 0.3), dict.fromkeys(NAMES, 0.0)
    none = dict.fromkeys(NONE_NAMES, 0.0)
    lead, _ = weights.probabilities([strong, weak], none)
    assert lead > 0.9
    assert max(weights.probabilities([weak] * 9, none)) == pytest.approx(0.1)
    assert weights.confidence(lead) == "high"
    assert weights.confidence(0.7) == "medium"
    assert weights.confidence(0.1) == "low"
