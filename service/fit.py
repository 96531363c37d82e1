"""Fit the ranking's weights and thresholds on the tuning part of a question set: ``trainmedic eval --fit FILE``.

Logistic regression over `service.features.NAMES`, one row per question and candidate case, with an L2 penalty and
non-negative or non-positive bounds where the sign of a feature is known: a set of some hundred questions must not
teach the ranking that a fired rule speaks against its case. Deterministic: same set, same knowledge, same weights.
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

PENALTY = 0.02
STEPS = 6000
RATE = 0.3
HIGH, MEDIUM = 0.9, 0.6
"""What the words promise: right this often."""
AGAINST = frozenset(
    {"rule_clear", "symptom_missed", "framework_clash", "algorithm_clash", "family_clash", "version_outside"}
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


def fit(x: Array, y: Array) -> tuple[Array, float]:
    """Weights and bias by projected gradient descent on the penalised log loss."""
    sign = np.array([-1.0 if name in AGAINST else 1.0 for name in NAMES])
    weights = np.zeros(x.shape[1])
    bias = 0.0
    for _ in range(STEPS):
        p = 1.0 / (1.0 + np.exp(-np.clip(x @ weights + bias, -30, 30)))
        error = (p - y) / len(y)
        weights -= RATE * (x.T @ error + PENALTY * weights / len(y))
        weights = np.where(weights * sign < 0, 0.0, weights)
        bias -= RATE * float(error.sum())
    return weights, bias


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

    def promise(limit: float) -> float:
        right = [label for top, label in best if top >= limit]
        return sum(right) / len(right) if right else 1.0

    answer = min(grid, key=lambda limit: (cost(limit), -limit))
    high = next((g for g in grid if g >= answer and all(promise(h) >= HIGH for h in grid if h >= g)), 0.99)
    medium = next((g for g in grid if all(promise(h) >= MEDIUM for h in grid if h >= g)), high)
    return answer, high, min(medium, high)


def fitted(items: Sequence[Item], advisor: Advisor, note: str) -> str:
    """The JSON form of weights fitted on ``items``."""
    x, y, questions = rows(items, advisor)
    weights, bias = fit(x, y)
    p = 1.0 / (1.0 + np.exp(-np.clip(x @ weights + bias, -30, 30)))
    return to_text(weights, bias, thresholds(items, questions, p, y), note)


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
