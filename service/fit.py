"""Fit the ranking's weights and thresholds on the tuning part of a question set: ``trainmedic eval --fit FILE``.

A conditional logit over `service.features.NAMES`: the candidates of a question compete with each other and with "none
of them". An L2 penalty, and bounds where the sign of a feature is known: a set of some hundred questions must not teach
the ranking that a fired rule speaks against its case. Deterministic: same set, same knowledge, same weights.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from service.advisor import Advisor, Ask
from service.evaluate import Item
from service.features import NAMES
from service.weights import shipped

PENALTY = 0.3
FOLDS = 5
STEPS = 6000
RATE = 0.3
HIGH, MEDIUM = 0.93, 0.67
"""Right this often on the tuning set, so that the promise (0.9 and 0.6) holds beyond it."""
AGAINST = frozenset(
    {"rule_clear", "symptom_missed", "framework_clash", "algorithm_clash", "family_clash", "version_outside"}
    | {"healthy_log"}
)
"""Features that speak against a case; all others speak for it."""
Array = npt.NDArray[np.float64]


def rows(items: Sequence[Item], advisor: Advisor) -> tuple[Array, Array, list[list[int]]]:
    """Features (n × features), labels (n), and for each question the indexes of its rows."""
    x: list[list[float]] = []
    y: list[float] = []
    questions: list[list[int]] = []
    for item in items:
        causes = advisor.ranked(Ask(question=item.question, attachments=item.attachments))
        mine = []
        for cause in causes:
            mine.append(len(x))
            x.append([cause.features[name] for name in NAMES])
            y.append(float(cause.case.id in item.cases))
        questions.append(mine)
    return np.array(x), np.array(y), questions


def fit(x: Array, y: Array, questions: Sequence[Sequence[int]]) -> tuple[Array, float]:
    """Weights and bias by projected gradient ascent on the penalised likelihood of the right case, or of none."""
    sign = np.array([-1.0 if name in AGAINST else 1.0 for name in NAMES])
    owner = np.zeros(len(y), np.int64)
    for number, mine in enumerate(questions):
        owner[list(mine)] = number
    answerable = np.bincount(owner, weights=y, minlength=len(questions)) > 0
    weights, bias = np.zeros(x.shape[1]), 0.0
    for step in range(STEPS):
        p = probabilities(x, owner, weights, bias, len(questions))
        right = p * y
        share = right / np.maximum(np.bincount(owner, weights=right, minlength=len(questions))[owner], 1e-12)
        # Where no candidate is right, all probability belongs to "none": the target of every candidate is 0.
        error = np.where(answerable[owner], share, 0.0) - p
        rate = RATE / (1 + step / STEPS)
        weights += rate * (x.T @ error - PENALTY * weights) / len(questions)
        weights = np.where(weights * sign < 0, 0.0, weights)
        bias += rate * float(error.sum()) / len(questions)
    return weights, bias


def probabilities(x: Array, owner: npt.NDArray[np.int64], weights: Array, bias: float, questions: int) -> Array:
    """The probability of each candidate among those of its question and "none"."""
    odds = np.exp(np.clip(x @ weights + bias, -30, 30))
    return np.asarray(odds / (1.0 + np.bincount(owner, weights=odds, minlength=questions)[owner]))


def thresholds(
    items: Sequence[Item], questions: Sequence[Sequence[int]], p: Array, y: Array
) -> tuple[float, float, float]:
    """``answer``, ``high`` and ``medium``.

    ``answer`` is the value that gets most verdicts right, a false answer counting three times. The words are the
    lowest values above which the first cause is right as often as they promise.
    """
    best = [(float(p[mine].max()), float(y[mine[int(p[mine].argmax())]])) if mine else (0.0, 0.0) for mine in questions]
    grid = [round(0.2 + 0.01 * n, 2) for n in range(76)]

    def cost(limit: float) -> float:
        total = 0.0
        for item, (top, _) in zip(items, best, strict=True):
            said, wanted = top >= limit, bool(item.cases)
            total += 3.0 if said and not wanted else 1.0 if wanted and not said else 0.0
        return total

    def promise(limit: float, below: float = 2.0) -> float:
        right = [label for top, label in best if limit <= top < below]
        return sum(right) / len(right) if right else 1.0

    answer = min(grid, key=lambda limit: (cost(limit), -limit))
    high = next((g for g in grid if g >= answer and all(promise(h) >= HIGH for h in grid if h >= g)), 0.99)
    # The word stands for the band below ``high`` alone: the sure answers above must not pay for it.
    medium = next((g for g in grid if all(promise(h, high) >= MEDIUM for h in grid if g <= h < high)), high)
    return answer, high, min(medium, high)


def fitted(items: Sequence[Item], advisor: Advisor, note: str) -> str:
    """The JSON form of weights fitted on ``items``.

    The thresholds are chosen on probabilities that each fifth got from weights fitted without it: those of the data a
    model was fitted on flatter it.
    """
    x, y, questions = rows(items, advisor)
    unseen = np.zeros(len(y))
    for fold in range(FOLDS):
        inside = [mine for number, mine in enumerate(questions) if number % FOLDS != fold]
        weights, bias = fit(*_part(x, y, inside))
        for mine in questions[fold::FOLDS]:
            unseen[mine] = probabilities(x[mine], np.zeros(len(mine), np.int64), weights, bias, 1)
    weights, bias = fit(x, y, questions)
    return to_text(weights, bias, thresholds(items, questions, unseen, y), note)


def _part(x: Array, y: Array, questions: Sequence[Sequence[int]]) -> tuple[Array, Array, list[list[int]]]:
    """The rows of some questions, numbered anew."""
    chosen = [row for mine in questions for row in mine]
    starts = np.cumsum([0, *(len(mine) for mine in questions)])
    numbered = [list(range(int(starts[n]), int(starts[n + 1]))) for n in range(len(questions))]
    return x[chosen], y[chosen], numbered


def to_text(weights: Array, bias: float, limits: tuple[float, float, float], note: str) -> str:
    """The weights' JSON form."""
    answer, high, medium = limits
    data = {
        "fitted_on": note,
        "bias": round(float(bias), 4),
        "weights": {name: round(float(value), 4) for name, value in zip(NAMES, weights, strict=True)},
        "answer": answer,
        "high": high,
        "medium": medium,
        "plausible": shipped().plausible,
        "field": shipped().field,
    }
    return json.dumps(data, indent=2) + "\n"
