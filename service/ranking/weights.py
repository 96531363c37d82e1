"""The ranking's weights and thresholds: data fitted by `ui.evaluation.fit`, never edited by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from operator import itemgetter, mul
from types import MappingProxyType

from trainmedic.kb.model.case import Confidence
from trainmedic.service.ranking.features import NAMES, NONE_NAMES


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """A conditional logit over `features.NAMES`, with "none of them" as one more alternative, and thresholds.

    ``none`` weighs `service.ranking.features.NONE_NAMES`, the features of that alternative.

    Candidates compete: where several are equally likely, none is likely, which is how a vague question is told from a
    clear one.

    ``answer``: the least probability to act on the first cause, ``artefact`` to act on one that says that nothing is
    wrong. ``high``/``medium``: confidence words.
    ``plausible``: below it a case is not offered. ``field``: the least concept weight that makes a question
    without any recognised fact one of our field.
    """

    bias: float
    weights: Mapping[str, float]
    none: Mapping[str, float]
    answer: float
    artefact: float
    high: float
    medium: float
    plausible: float
    field: float

    def probabilities(self, candidates: Sequence[Mapping[str, float]], none: Mapping[str, float]) -> tuple[float, ...]:
        """For each candidate of one question, the probability that it is the cause. They sum to at most 1.

        ``none`` holds the question's own features, see `service.ranking.features.none_features`.
        """
        weights = _in_order(self.weights)
        odds = [_odds(self.bias + sum(map(mul, weights, _in_order(found)))) for found in candidates]
        whole = _odds(sum(self.none[name] * none[name] for name in NONE_NAMES)) + sum(odds)
        return tuple(odd / whole for odd in odds)

    def confidence(self, probability: float) -> Confidence:
        """The word for a probability: ``high`` is fitted to be right 19 times in 20, ``medium`` twice in three."""
        if probability >= self.high:
            return "high"
        return "medium" if probability >= self.medium else "low"


_in_order: Callable[[Mapping[str, float]], tuple[float, ...]] = itemgetter(*NAMES)


def _odds(utility: float) -> float:
    return math.exp(max(-30.0, min(30.0, utility)))


def from_json(text: str) -> Weights:
    """Weights from their JSON form."""
    data = json.loads(text)
    return Weights(
        bias=data["bias"],
        weights=MappingProxyType({name: float(data["weights"].get(name, 0.0)) for name in NAMES}),
        none=MappingProxyType({name: float(data.get("none", {}).get(name, 0.0)) for name in NONE_NAMES}),
        **{name: float(data[name]) for name in ("answer", "artefact", "high", "medium", "plausible", "field")},
    )


@cache
def shipped() -> Weights:
    """The weights that ship with the package."""
    return from_json(files("trainmedic.service.ranking").joinpath("weights.json").read_text(encoding="utf-8"))
