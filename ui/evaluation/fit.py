"""Fit the ranking's weights and thresholds on incidents of outside threads: ``trainmedic eval --fit FILE``.

A conditional logit over `service.ranking.features.NAMES`: the candidates of a question compete with each other and with
"something else", which has features of its own (`NONE_NAMES`). The penalty pulls towards `PRIOR`, which was set by
judgement, and every sign is bounded: a few hundred incidents must not teach the ranking that a traceback speaks against
every cause. The weight of the fused retrieval has a floor, because on incidents that no one here wrote no fitted weight
has been worth more than plain rank fusion. Deterministic.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from trainmedic.service.advisor import Advisor
from trainmedic.service.ranking.diagnose import answerable, likelihood
from trainmedic.service.ranking.features import (
    AGAINST,
    EITHER,
    NAMES,
    NONE_AGAINST,
    NONE_NAMES,
    Candidate,
    Context,
    features,
    none_features,
)
from trainmedic.service.ranking.inference import PROOF, infer
from trainmedic.service.ranking.weights import Weights, from_json, shipped
from trainmedic.ui.evaluation.outside import Incident, Scorer, lower_bound

PRIOR: Mapping[str, float] = MappingProxyType(
    {
        "fused": 15.0,
        "page": 2.0,
        "pasted_agreed": 2.0,
        "mechanism_fused": 1.0,
        "rule_fired": 4.5,
        "rule_unsure": 0.6,
        "concepts": 1.0,
        "focus": 0.5,
        "symptom": 0.8,
        "predicted": 0.6,
        "support": 2.0,
        "holds": 1.8,
        "framework_match": 0.4,
        "algorithm_match": 0.4,
        "family_match": 0.4,
        "version_inside": 1.0,
        "settings": 1.2,
        "helped": 1.5,
        "common": 0.3,
        "message": 2.5,
        "reported": 0.5,
        "rule_clear": -0.8,
        "denied": -1.2,
        "symptom_missed": -0.3,
        "contradiction": -1.5,
        "excluded": -4.0,
        "fails": -2.0,
        "framework_clash": -1.0,
        "framework_unsaid": -2.0,
        "presupposed": -1.0,
        "algorithm_clash": -1.5,
        "family_clash": -1.5,
        "version_outside": -2.0,
        "worked_before": -2.0,
        "tried": -1.5,
        "already_so": -1.5,
        "healthy_log": -1.0,
        "is_origin": -1.0,
        "is_mechanism": -1.0,
        "is_defect": -1.0,
    }
)
FLOORS: Mapping[str, float] = MappingProxyType({"fused": 10.0, "support": 1.5, "family_match": 0.4})
MOST: Mapping[str, float] = MappingProxyType({"message": 3.0})
"""The most that counts for a cause: a few incidents whose message said everything must not make every message proof."""
CEILINGS: Mapping[str, float] = MappingProxyType(
    {"family_clash": -1.5, "framework_unsaid": -0.7, "symptom_missed": -1.0}
)
"""Upper bounds of the weights of another model family, a framework without any sign, and other symptoms than those
asked about."""
NONE_PRIOR: Mapping[str, float] = MappingProxyType(
    {"vague": 1.0, "reassurance": 0.5, "complaint": -0.5, "healthy": 0.8, "request": 1.0, "length": -0.5}
)
BIAS = -17.0
PENALTY = 30.0
FOLDS = 6
STEPS = 4000
RATE = 0.2
FALSE_CLAIMS, FALSE_ANSWERS = 0.075, 0.15
"""The tolerated shares of incidents that must not be answered but are: with more than low confidence, and at all."""
HARMLESS = 0.6
"""The least probability of an explanation that blesses a run: to bless a sick one is worse than to ask."""
HIGH, MEDIUM = 0.97, 0.75
"""How often a first cause with this word must be right."""
LEAST_SURE = 0.93
"""The one-sided 95 % lower bound that ``high`` needs besides: a few right answers in a row prove little."""
SURE = 0.99
"""Where ``high`` begins if nothing earns it."""
Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Questions as numbers: candidates (n x features) with the question each belongs to and whether it is right, and
    the questions' own features (m x features of "something else"). ``groups`` are the questions' framework families."""

    candidates: Array
    right: Array
    owner: npt.NDArray[np.int64]
    questions: Array
    groups: tuple[str, ...]

    def part(self, chosen: Sequence[int]) -> Sample:
        """Some of the questions, numbered again."""
        number = {question: n for n, question in enumerate(chosen)}
        rows = [row for row, question in enumerate(self.owner.tolist()) if question in number]
        return Sample(
            candidates=self.candidates[rows],
            right=self.right[rows],
            owner=np.array([number[question] for question in self.owner[rows].tolist()], np.int64),
            questions=self.questions[list(chosen)],
            groups=tuple(self.groups[question] for question in chosen),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Weights of the candidates' features, their bias, and weights of the questions' features."""

    weights: Array
    bias: float
    none: Array

    def probabilities(self, sample: Sample) -> Array:
        """The probability of each candidate among those of its question and "something else"."""
        odds = np.exp(np.clip(sample.candidates @ self.weights + self.bias, -30, 30))
        rest = np.exp(np.clip(sample.questions @ self.none, -30, 30))
        whole = rest + np.bincount(sample.owner, weights=odds, minlength=len(rest))
        return np.asarray(odds / whole[sample.owner])


def prior() -> Fit:
    """The weights before any fitting."""
    return Fit(
        weights=np.array([PRIOR[name] for name in NAMES]),
        bias=BIAS,
        none=np.array([NONE_PRIOR.get(name, 0.0) for name in NONE_NAMES]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """An incident in one language, as ranking gets it."""

    incident: Incident
    candidates: tuple[Candidate, ...]
    context: Context


def questions_of(incidents: Sequence[Incident], advisor: Advisor) -> tuple[Question, ...]:
    """Every incident, asked in both languages."""
    questions = []
    for incident in incidents:
        for language in incident.question:
            candidates, context = advisor.candidates(incident.ask(language))
            questions.append(Question(incident=incident, candidates=candidates, context=context))
    return tuple(questions)


def _to_be_taught(question: Question, scorer: Scorer) -> Question:
    """A labelled message with the candidates that say something: not those close to the cause, nor the pages that were
    learned from its thread."""
    incident = question.incident
    if not incident.labelled:
        return question
    out = (incident.close | scorer.citing(incident)) - incident.right
    return replace(question, candidates=tuple(each for each in question.candidates if each.cause.id not in out))


def sample_of(questions: Sequence[Question], scorer: Scorer) -> Sample:
    """The features of each question's candidates, as ranking computes them."""
    x: list[list[float]] = []
    y: list[float] = []
    owner: list[int] = []
    z: list[list[float]] = []
    for number, question in enumerate(questions):
        right = right_of(question, scorer)
        none = none_features(question.context)
        for candidate in question.candidates:
            values = features(candidate, question.context)
            x.append([values[name] for name in NAMES])
            y.append(float(candidate.cause.id in right))
            owner.append(number)
        z.append([none[name] for name in NONE_NAMES])
    return Sample(
        candidates=np.array(x).reshape(-1, len(NAMES)),
        right=np.array(y),
        owner=np.array(owner, np.int64),
        questions=np.array(z).reshape(-1, len(NONE_NAMES)),
        groups=tuple(question.incident.family for question in questions),
    )


def right_of(question: Question, scorer: Scorer) -> frozenset[str]:
    """The causes that are right: those that a reader chose, or that mention what the incident requires."""
    incident = question.incident
    return incident.right if incident.labelled else (scorer.right(incident.required) | stated(question, scorer))


def stated(question: Question, scorer: Scorer) -> frozenset[str]:
    """The mechanisms that are right together with the origin that an answer would name first."""
    first: dict[str, tuple[float, str]] = {}
    for candidate in question.candidates:
        if candidate.cause.level == "origin":
            place = question.context.placed(candidate.cause.id)[0]
            own = (candidate.fused + features(candidate, question.context)["holds"], candidate.cause.id)
            first[place.mechanism] = max(first.get(place.mechanism, (-1.0, "")), own)
    right = scorer.right(question.incident.required)
    return frozenset(mechanism for mechanism, (_, origin) in first.items() if origin in right)


def fit(sample: Sample, start: Fit | None = None) -> Fit:
    """Projected gradient ascent on the likelihood of a right cause (or of something else), penalised by the distance
    from ``start`` (`prior`) in units of each feature's spread."""
    start = start or prior()
    spread = sample.candidates.std(axis=0)
    scale = np.where(spread > 0, 1.0 / np.where(spread > 0, spread, 1.0), 0.0)
    x, y, owner, z = sample.candidates * scale, sample.right, sample.owner, sample.questions
    none_scale = np.maximum(z.std(axis=0), 0.1)
    count = len(z)
    home = start.weights / np.where(scale > 0, scale, 1.0)
    low, high = _bounds(scale)
    none_low, none_high = _none_bounds()
    answerable = np.bincount(owner, weights=y, minlength=count) > 0
    weights, bias, none = home.copy(), start.bias, start.none.copy()
    scaled = Sample(candidates=x, right=y, owner=owner, questions=z, groups=sample.groups)
    for step in range(STEPS):
        p = Fit(weights=weights, bias=bias, none=none).probabilities(scaled)
        right = p * y
        share = right / np.maximum(np.bincount(owner, weights=right, minlength=count)[owner], 1e-12)
        # Where no candidate is right, all probability belongs to something else: every candidate's target is 0.
        error = np.where(answerable[owner], share, 0.0) - p
        spare = np.where(answerable, 0.0, 1.0) - (1.0 - np.bincount(owner, weights=p, minlength=count))
        rate = RATE / (1 + 4 * step / STEPS) / count
        weights = np.clip(weights + rate * (x.T @ error - PENALTY * (weights - home)), low, high)
        bias += rate * float(error.sum())
        none = np.clip(none + rate * (z.T @ spare - PENALTY * none_scale * (none - start.none)), none_low, none_high)
    return Fit(weights=np.where(scale > 0, weights * scale, start.weights), bias=bias, none=none)


def _bounds(scale: Array) -> tuple[Array, Array]:
    """The least and the greatest weight of each feature, in units of its spread."""
    low = np.array([-np.inf if name in (*AGAINST, *EITHER) else FLOORS.get(name, 0.0) for name in NAMES])
    high = np.array([CEILINGS.get(name, 0.0) if name in AGAINST else MOST.get(name, np.inf) for name in NAMES])
    units = np.where(scale > 0, scale, 1.0)
    return low / units, high / units


def _none_bounds() -> tuple[Array, Array]:
    low = np.array([-np.inf if name in NONE_AGAINST else 0.0 for name in NONE_NAMES])
    high = np.array([0.0 if name in NONE_AGAINST else np.inf for name in NONE_NAMES])
    return low, high


def folds_of(groups: Sequence[str]) -> tuple[tuple[list[int], list[int]], ...]:
    """(questions to fit on, questions left out), `FOLDS` times; a framework family is left out as a whole."""
    families = sorted(Counter(groups).items(), key=lambda item: (-item[1], item[0]))
    number = {family: place % FOLDS for place, (family, _) in enumerate(families)}
    return tuple(
        (
            [n for n, group in enumerate(groups) if number[group] != fold],
            [n for n, group in enumerate(groups) if number[group] == fold],
        )
        for fold in range(min(FOLDS, len(families)))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Top:
    """The first cause of a question by weights fitted without its family: its probability, whether it is right, and
    what it is answered by (`service.ranking.diagnose.likelihood`; 0 where likeness cannot answer). ``proven``: a check
    shows it, and its word does not rest on the probability."""

    probability: float
    right: bool
    likelihood: float
    proven: bool = False


def unseen(questions: Sequence[Question], sample: Sample, scorer: Scorer) -> tuple[Top, ...]:
    """The first cause of every question, in their order."""
    tops: dict[int, Top] = {}
    for inside, outside in folds_of(sample.groups):
        weights = from_json(to_text(fit(sample.part(inside)), Thresholds(answer=1.0, high=1.0, medium=1.0), ""))
        for number in outside:
            tops[number] = _top(questions[number], weights, scorer)
    return tuple(tops[number] for number in range(len(questions)))


def _top(question: Question, weights: Weights, scorer: Scorer) -> Top:
    differential = infer(question.candidates, question.context, weights)
    if not differential.causes:
        return Top(probability=0.0, right=False, likelihood=0.0)
    first = differential.causes[0]
    right = right_of(question, scorer)
    likely = likelihood(differential, first) if answerable(question.context) else 0.0
    return Top(
        probability=first.probability,
        right=first.case.id in right,
        likelihood=likely,
        proven=first.features["rule_fired"] >= PROOF,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """See `service.ranking.weights.Weights`."""

    answer: float
    high: float
    medium: float


def thresholds(tops: Sequence[Top], must_not: Sequence[Top]) -> Thresholds:
    """The least probabilities that keep what the words promise, over incidents with a cause and those that must not be
    answered."""
    grid = [round(0.2 + 0.01 * n, 2) for n in range(80)]
    most = FALSE_ANSWERS * len(must_not)
    answer = next((g for g in grid if sum(top.likelihood >= g for top in must_not) <= most), SURE)
    wrongly_answered = [top for top in must_not if top.likelihood >= answer]

    def claims(limit: float) -> int:
        return sum(top.probability >= limit for top in wrongly_answered)

    def promise(limit: float, below: float = 2.0) -> float:
        right = [top.right for top in tops if limit <= top.probability < below]
        return sum(right) / len(right) if right else 1.0

    def is_sure(limit: float) -> bool:
        right = [top.right for top in tops if top.probability >= limit]
        return promise(limit) >= HIGH and lower_bound(sum(right), len(right)) >= LEAST_SURE

    high = next((g for g in grid if is_sure(g)), SURE)
    # The word stands for the band below ``high`` alone: the sure answers above must not pay for it.
    # What is not sure enough to be answered is not medium either.
    usable = (g for g in grid if answer <= g < high and claims(g) <= FALSE_CLAIMS * len(must_not))
    medium = next((g for g in usable if promise(g, high) >= MEDIUM), high)
    return Thresholds(answer=answer, high=high, medium=medium)


def fitted(incidents: Sequence[Incident], advisor: Advisor, note: str) -> str:
    """The JSON form of weights fitted on ``incidents``.

    The thresholds are chosen on probabilities that each family got from weights fitted without it, on incidents whose
    thread no page cites, and on first causes that no check shows: data that weights were fitted on, pages written from
    it and proof flatter them.
    """
    scorer = Scorer(advisor.knowledge.published)
    questions = tuple(_to_be_taught(question, scorer) for question in questions_of(incidents, advisor))
    sample = sample_of(questions, scorer)
    tops = unseen(questions, sample, scorer)
    with_cause = [
        top
        for top, one in zip(tops, questions, strict=True)
        if one.incident.expect == "cause" and not scorer.cites(one.incident) and not top.proven
    ]
    must_not = [top for top, one in zip(tops, questions, strict=True) if one.incident.expect != "cause"]
    return to_text(fit(sample), thresholds(with_cause, must_not), note)


def to_text(model: Fit, limits: Thresholds, note: str) -> str:
    data = {
        "fitted_on": note,
        "bias": round(float(model.bias), 4),
        "weights": {name: round(float(value), 4) for name, value in zip(NAMES, model.weights, strict=True)},
        "none": {name: round(float(value), 4) for name, value in zip(NONE_NAMES, model.none, strict=True)},
        "answer": limits.answer,
        "artefact": max(limits.answer, limits.medium, HARMLESS),
        "high": limits.high,
        "medium": limits.medium,
        "plausible": shipped().plausible,
        "field": shipped().field,
    }
    return json.dumps(data, indent=2) + "\n"
