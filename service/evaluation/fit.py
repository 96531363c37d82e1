"""Fit the ranking's weights and thresholds on the tuning part of a question set: ``trainmedic eval --fit FILE``.

A conditional logit over `service.ranking.features.NAMES`: the candidates of a question compete with each other and
with "none of them", which has features of its own (`NONE_NAMES`). Features are scaled to equal spread for the L2
penalty and bounded if their sign is known: a few hundred questions must not teach the ranking that a fired rule
speaks against its case. Deterministic.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trainmedic.service.advisor import Advisor
from trainmedic.service.evaluation.causes import Item
from trainmedic.service.question.request import Ask
from trainmedic.service.ranking.features import NAMES, NONE_NAMES, features, none_features
from trainmedic.service.ranking.weights import shipped

PENALTY = 0.3
SPREAD = 0.5
"""What a feature's spread is scaled to before fitting: the penalty then weighs all features alike."""
FOLDS = 5
STEPS = 6000
RATE = 0.3
FALSE = 0.03
"""The tolerated share of unanswerable questions that get an answer."""
HIGH, MEDIUM = 0.93, 0.67
"""Right this often on the tuning set, so that the promise (0.9 and 0.6) holds beyond it."""
AGAINST = frozenset(
    {"rule_clear", "denied", "symptom_missed", "framework_clash", "algorithm_clash", "family_clash", "version_outside"}
    | {"healthy_log", "family_unsaid"}
)
"""Features that speak against a case; all others speak for it."""
Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Questions as numbers: candidates (n x features) with the question each belongs to and whether it is right, and
    the questions' own features (m x features of "none")."""

    candidates: Array
    right: Array
    owner: npt.NDArray[np.int64]
    questions: Array

    def part(self, chosen: Sequence[int]) -> Sample:
        """Some of the questions, numbered anew."""
        number = {question: n for n, question in enumerate(chosen)}
        rows = [row for row, question in enumerate(self.owner.tolist()) if question in number]
        return Sample(
            candidates=self.candidates[rows],
            right=self.right[rows],
            owner=np.array([number[question] for question in self.owner[rows].tolist()], np.int64),
            questions=self.questions[list(chosen)],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Weights of the candidates' features, their bias, and weights of the questions' features."""

    weights: Array
    bias: float
    none: Array

    def probabilities(self, sample: Sample) -> Array:
        """The probability of each candidate among those of its question and "none"."""
        odds = np.exp(np.clip(sample.candidates @ self.weights + self.bias, -30, 30))
        rest = np.exp(np.clip(sample.questions @ self.none, -30, 30))
        whole = rest + np.bincount(sample.owner, weights=odds, minlength=len(rest))
        return np.asarray(odds / whole[sample.owner])


def sample_of(items: Sequence[Item], advisor: Advisor) -> Sample:
    """The features of each item's candidates, as ranking computes them."""
    x: list[list[float]] = []
    y: list[float] = []
    owner: list[int] = []
    z: list[list[float]] = []
    for number, item in enumerate(items):
        candidates, context = advisor.candidates(Ask(question=item.question, attachments=item.attachments))
        none = none_features(context)
        z.append([none[name] for name in NONE_NAMES])
        for scored in sorted(candidates, key=lambda scored: scored.case.id):
            values = features(scored, context)
            x.append([values[name] for name in NAMES])
            y.append(float(scored.case.id in item.cases))
            owner.append(number)
    return Sample(
        candidates=np.array(x).reshape(-1, len(NAMES)),
        right=np.array(y),
        owner=np.array(owner, np.int64),
        questions=np.array(z).reshape(-1, len(NONE_NAMES)),
    )


def fit(sample: Sample) -> Fit:
    """Projected gradient ascent on the penalised likelihood of the right case, or of none."""
    spread = sample.candidates.std(axis=0)
    scale = np.where(spread > 0, SPREAD / np.where(spread > 0, spread, 1.0), 1.0)
    scaled = Sample(
        candidates=sample.candidates * scale, right=sample.right, owner=sample.owner, questions=sample.questions
    )
    x, y, owner, z = scaled.candidates, scaled.right, scaled.owner, scaled.questions
    count = len(z)
    sign = np.array([-1.0 if name in AGAINST else 1.0 for name in NAMES])
    answerable = np.bincount(owner, weights=y, minlength=count) > 0
    now = Fit(weights=np.zeros(x.shape[1]), bias=0.0, none=np.zeros(z.shape[1]))
    for step in range(STEPS):
        p = now.probabilities(scaled)
        right = p * y
        share = right / np.maximum(np.bincount(owner, weights=right, minlength=count)[owner], 1e-12)
        # Where no candidate is right, all probability belongs to "none": the target of every candidate is 0.
        error = np.where(answerable[owner], share, 0.0) - p
        spare = np.where(answerable, 0.0, 1.0) - (1.0 - np.bincount(owner, weights=p, minlength=count))
        rate = RATE / (1 + step / STEPS) / count
        weights = now.weights + rate * (x.T @ error - PENALTY * now.weights)
        now = Fit(
            weights=np.where(weights * sign < 0, 0.0, weights),
            bias=now.bias + rate * float(error.sum()),
            none=now.none + rate * (z.T @ spare - PENALTY * now.none),
        )
    return Fit(weights=now.weights * scale, bias=now.bias, none=now.none)


def thresholds(items: Sequence[Item], sample: Sample, p: Array) -> tuple[float, float, float]:
    """``answer``, ``high`` and ``medium``.

    ``answer`` is the lowest value with which no more than `FALSE` of the questions that have no answer get one. The
    words are the lowest values above which the first cause is right as often as they promise.
    """
    best = [(0.0, 0.0)] * len(items)
    for row, question in enumerate(sample.owner.tolist()):
        best[question] = max(best[question], (float(p[row]), float(sample.right[row])))
    grid = [round(0.2 + 0.01 * n, 2) for n in range(79)]

    none = [top for item, (top, _) in zip(items, best, strict=True) if not item.cases]
    answer = next((g for g in grid if sum(top >= g for top in none) <= FALSE * len(none)), grid[-1])

    def promise(limit: float, below: float = 2.0) -> float:
        right = [label for top, label in best if limit <= top < below]
        return sum(right) / len(right) if right else 1.0

    high = next((g for g in grid if g >= answer and all(promise(h) >= HIGH for h in grid if h >= g)), 0.99)
    # The word stands for the band below ``high`` alone: the sure answers above must not pay for it.
    medium = next((g for g in grid if all(promise(h, high) >= MEDIUM for h in grid if g <= h < high)), high)
    return answer, high, min(medium, high)


def unseen(sample: Sample) -> Array:
    """The probability of each candidate by weights that were fitted without its question."""
    p = np.zeros(len(sample.right))
    count = len(sample.questions)
    for fold in range(FOLDS):
        fold_fit = fit(sample.part([n for n in range(count) if n % FOLDS != fold]))
        others = [n for n in range(count) if n % FOLDS == fold]
        p[np.isin(sample.owner, others)] = fold_fit.probabilities(sample.part(others))
    return p


def fitted(items: Sequence[Item], advisor: Advisor, note: str) -> str:
    """The JSON form of weights fitted on ``items``.

    The thresholds are chosen on probabilities that each fifth got from weights fitted without it: those of the data a
    model was fitted on flatter it.
    """
    sample = sample_of(items, advisor)
    return to_text(fit(sample), thresholds(items, sample, unseen(sample)), note)


def to_text(model: Fit, limits: tuple[float, float, float], note: str) -> str:
    answer, high, medium = limits
    data = {
        "fitted_on": note,
        "bias": round(float(model.bias), 4),
        "weights": {name: round(float(value), 4) for name, value in zip(NAMES, model.weights, strict=True)},
        "none": {name: round(float(value), 4) for name, value in zip(NONE_NAMES, model.none, strict=True)},
        "answer": answer,
        "high": high,
        "medium": medium,
        "plausible": shipped().plausible,
        "field": shipped().field,
    }
    return json.dumps(data, indent=2) + "\n"
