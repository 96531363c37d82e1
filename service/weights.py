"""The ranking's weights and thresholds: data fitted by `service.fit`, never edited by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from service.answer import Confidence
from service.features import NAMES


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """A conditional logit over `service.features.NAMES`, with "none of them" as one more alternative, and thresholds.

    Candidates compete: where several are equally likely, none is likely, which is how a vague question is told from a
    clear one.

    ``answer``: the least probability to act on the first cause. ``high``/``medium``: confidence words.
    ``plausible``: below it a case is not offered. ``field``: the least concept weight that makes a question
    without any recognised fact one of our field.
    """

    bias: float
    weights: Mapping[str, float]
    answer: float
    high: float
    medium: float
    plausible: float
    field: float

    def probabilities(self, candidates: Sequence[Mapping[str, float]]) -> tuple[float, ...]:
        """For each candidate of one question, the probability that it is the cause. They sum to at most 1."""
        odds = [math.exp(max(-30.0, min(30.0, self._utility(features)))) for features in candidates]
        whole = 1.0 + sum(odds)
        return tuple(each / whole for each in odds)

    def _utility(self, features: Mapping[str, float]) -> float:
        return self.bias + sum(self.weights[name] * features[name] for name in NAMES)

    def confidence(self, probability: float) -> Confidence:
        """The word for a probability: ``high`` is right nine times in ten on the evaluation set, ``medium`` six."""
        if probability >= self.high:
            return "high"
        return "medium" if probability >= self.medium else "low"


def from_json(text: str) -> Weights:
    """Weights from their JSON form."""
    data = json.loads(text)
    return Weights(
        bias=data["bias"],
        weights=MappingProxyType({name: float(data["weights"].get(name, 0.0)) for name in NAMES}),
        **{name: float(data[name]) for name in ("answer", "high", "medium", "plausible", "field")},
    )


@cache
def shipped() -> Weights:
    """The weights that ship with the package."""
    return from_json(files("service").joinpath("weights.json").read_text(encoding="utf-8"))
