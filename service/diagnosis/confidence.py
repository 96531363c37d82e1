"""How sure a model's first hypothesis is, by how often this model was right in such cases on incidents from outside."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from trainmedic.kb.model.case import Confidence
from trainmedic.service.llm.abilities import WAYS, Way
from trainmedic.service.ranking.judgement import Hypothesis

HIGH, MEDIUM = 0.95, 2 / 3
"""Least share of right first causes that the words promise; see `docs/know/evaluation.md`."""
Role = Literal["decides", "elects", "unused"]
"""``decides``: one structured diagnosis, proved by the program; ``elects``: probabilities for the program's own causes;
``unused``: it can do neither, and the program answers alone."""
RULE_OF_SUCCESSION = 1
"""Right and wrong answers added to each bin, so that few answers promise little."""
BORROWED = 5
"""Answers' worth of its band that a bin of few answers borrows."""
BANDS = (90, 80, 70, 60, 0)
"""How sure a model says it is, in percent, from … on."""
CAREFUL: Mapping[str, tuple[int, int]] = MappingProxyType(
    {"90/proven": (8, 10), "90/supported": (7, 10), "90/unproven": (5, 10), "80/proven": (7, 10)}
)
"""Right answers of all, assumed of a model that was never measured: nothing of it is high."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Counts of one model: (band of how sure it said it is / how it was supported) → (right, all).

    ``role`` is the one that it was better in, ``weights`` how much what it says counts as an elector, for each way to
    ask it: nothing if that was never measured.
    """

    model: str
    bins: Mapping[str, tuple[int, int]] = field(default_factory=lambda: CAREFUL)
    measured: bool = False
    role: Role | None = None
    weights: Mapping[Way, float] = field(default_factory=dict)

    @property
    def ways(self) -> tuple[Way, ...]:
        """The ways in which it may elect, the surest first."""
        return tuple(way for way in WAYS if self.weight(way) > 0)

    def weight(self, way: Way) -> float:
        return self.weights.get(way, 0.0)

    def graded(self, hypotheses: Sequence[Hypothesis], said: int) -> tuple[Hypothesis, ...]:
        """The hypotheses with their probabilities; the first by its bin, the others share what is left."""
        if not hypotheses:
            return ()
        first, *others = hypotheses
        probability = self.probability(bin_of(first, said))
        left = 1.0 - probability
        graded = [replace(first, probability=probability, confidence=_word(probability))]
        for place, other in enumerate(others, start=1):
            graded.append(replace(other, probability=left / 2**place))
        return tuple(graded)

    def probability(self, name: str) -> float:
        """The share of right answers in a bin, which its band stands in for as far as the bin is empty."""
        right, total = self.bins.get(name, (0, 0))
        return (right + BORROWED * self.bands[int(name.partition("/")[0])]) / (total + BORROWED)

    @property
    def bands(self) -> Mapping[int, float]:
        """The share of right answers by band. A band that would have less than the one below is pooled with it."""
        pools: list[tuple[int, int, list[int]]] = []
        for band in BANDS:
            counts = [counts for key, counts in self.bins.items() if key.partition("/")[0] == str(band)]
            pools.append((sum(right for right, _ in counts), sum(total for _, total in counts), [band]))
            while len(pools) > 1 and _share(pools[-1]) >= _share(pools[-2]):
                (right, total, bands), (more, all_more, lower) = pools[-2:]
                pools[-2:] = [(right + more, total + all_more, [*bands, *lower])]
        return {band: (p[0] + RULE_OF_SUCCESSION) / (p[1] + 2 * RULE_OF_SUCCESSION) for p in pools for band in p[2]}


def _share(pool: tuple[int, int, list[int]]) -> float:
    right, total, _ = pool
    return right / total if total else 0.0


def bin_of(first: Hypothesis, said: int) -> str:
    return f"{next(band for band in BANDS if said >= band)}/{first.support}"


def _word(probability: float) -> Confidence:
    return "high" if probability >= HIGH else "medium" if probability >= MEDIUM else "low"


def calibration_of(model: str, folder: Path | None = None) -> Calibration:
    """The counts of a model: those measured here (in ``folder``), else those shipped, else careful ones."""
    name = f"{file_name(model)}.json"
    shipped = files("trainmedic.service.diagnosis").joinpath("calibrations", name)
    for path in (folder / name if folder is not None else None, shipped):
        # A file that someone damaged promises nothing.
        with suppress(ValueError, KeyError, TypeError, AttributeError, OSError):
            if path is not None and path.is_file():
                stored = json.loads(path.read_text(encoding="utf-8"))
                counts = {str(key): (int(right), int(total)) for key, (right, total) in stored["bins"].items()}
                role: Role = "elects" if stored.get("role") == "elects" else "decides"
                weights = {way: float(stored.get("weights", {}).get(way, 0.0)) for way in WAYS}
                return Calibration(model=model, bins=counts, measured=True, role=role, weights=weights)
    return Calibration(model=model)


def store(text: str, model: str, folder: Path) -> Path:
    """Keep what was measured of a model where `calibration_of` finds it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{file_name(model)}.json"
    path.write_text(text, encoding="utf-8")
    return path


def file_name(model: str) -> str:
    """A model's name as the name of a file."""
    return re.sub(r"[^a-z0-9.]+", "-", model.lower()).strip("-.") or "model"
