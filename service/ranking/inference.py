"""Candidates to a differential: the probability of every cause, origin and mechanism, and of something else. Pure.

All causes compete in one conditional logit (`service.ranking.weights`) with "something else" as one more alternative.
The levels are sums: an origin is as likely as itself and its cases together, a mechanism as all of its causes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from trainmedic.kb.engine.mechanism import COMMONNESS, OriginState, Weighed
from trainmedic.kb.model.case import Case, Confidence
from trainmedic.kb.model.report import Finding
from trainmedic.service.ranking.features import Candidate, Context, Place, features, findings_of, none_features
from trainmedic.service.ranking.weights import Weights

ASK = 0.15
"""The least probability of a first cause for which asking back is worth it."""
PROOF = 0.75
"""The least weight of a fired finding (`features.finding_weight`) that proves its cause: an error or a warning about
the very symptom asked about. On the outside incidents such a first cause was right in all of 22."""
PROVEN, SHOWN = 0.6, 0.4
"""The least probabilities of a cause that a rule proves or shows: below them another cause fits the question better."""
CLASHES = ("framework_clash", "framework_unsaid", "algorithm_clash", "family_clash", "version_outside", "worked_before")
"""Features that say that a case is about another run than this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One candidate with its probability and what speaks for it.

    ``place`` is where it belongs among the mechanisms, ``members`` the causes that say the same and are counted with
    it: the origin of a case, the cases of an origin.
    """

    case: Case
    probability: float
    confidence: Confidence
    findings: tuple[Finding, ...]
    features: Mapping[str, float]
    place: Place | None = None
    members: tuple[Cause, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismBelief:
    """A mechanism with its probability, what was weighed, and its causes, most probable first."""

    weighed: Weighed
    probability: float
    causes: tuple[Cause, ...]

    @property
    def id(self) -> str:
        return self.weighed.mechanism.id

    def origins(self) -> tuple[OriginState, ...]:
        """All its origins that the evidence does not contradict, the likeliest first: those whose condition holds, then
        as probable as their causes are, then the commoner."""
        probability: dict[str, float] = defaultdict(float)
        for cause in self.causes:
            if cause.place is not None and cause.place.origin:
                probability[cause.place.origin] += cause.probability
        left = [state for state in self.weighed.origins if state.value is not False]

        def order(state: OriginState) -> tuple[float, float]:
            return (-(probability[state.origin.id] * (2.0 if state.value else 1.0)), -COMMONNESS[state.origin.common])

        return tuple(sorted(left, key=order))

    def state(self, cause: Cause) -> OriginState | None:
        """The origin that a cause of it belongs to, as it is on the evidence."""
        origin = cause.place.origin if cause.place is not None else ""
        return next((state for state in self.weighed.origins if state.origin.id == origin), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Differential:
    """All causes, most probable first (ties by id), those of one origin counted as one; the mechanisms likewise.

    ``other`` is the probability that it is something else.
    """

    causes: tuple[Cause, ...] = ()
    mechanisms: tuple[MechanismBelief, ...] = ()
    other: float = 1.0
    _by_id: Mapping[str, MechanismBelief] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_id", {belief.id: belief for belief in reversed(self.mechanisms)})

    def belief(self, cause: Cause) -> MechanismBelief | None:
        """The mechanism that a cause belongs to."""
        return self._by_id.get(cause.place.mechanism) if cause.place is not None else None


def infer(candidates: Sequence[Candidate], context: Context, weights: Weights) -> Differential:
    """The differential of one question."""
    ordered = sorted(candidates, key=lambda candidate: candidate.cause.id)
    values = [features(candidate, context) for candidate in ordered]
    chances = _competing(ordered, values, none_features(context), weights)
    causes = [
        Cause(
            case=candidate.cause,
            probability=probability,
            confidence="low",
            findings=findings_of(candidate.cause, context.report),
            features=value,
            place=_place(candidate.cause, context),
        )
        for candidate, value, probability in zip(ordered, values, chances, strict=True)
    ]
    return _differential(_joined(causes), context, weights)


def reweighed(
    differential: Differential, odds: Mapping[str, float], context: Context, weights: Weights
) -> Differential:
    """The causes that ``odds`` name (id → factor) weighed again among themselves: together they stay as likely. Those
    behind them fall as far as the last of these, so that none overtakes what was weighed."""
    named = [cause for cause in differential.causes if cause.case.id in odds]
    scale = sum(cause.probability for cause in named) / sum(odds[cause.case.id] * cause.probability for cause in named)
    factors = {id: odd * scale for id, odd in odds.items()}
    least = min(1.0, *factors.values())
    causes = [
        replace(cause, probability=cause.probability * factors.get(cause.case.id, least))
        for cause in differential.causes
    ]
    return _differential(causes, context, weights)


def _differential(causes: Sequence[Cause], context: Context, weights: Weights) -> Differential:
    ranked = _ranked(causes)
    words = [_confidence(cause, context, weights) for cause in ranked]
    named = tuple(
        cause if word == cause.confidence else replace(cause, confidence=word)
        for cause, word in zip(ranked, words, strict=True)
    )
    return Differential(
        causes=named,
        mechanisms=_mechanisms(named, context),
        other=max(0.0, 1.0 - sum(cause.probability for cause in named)),
    )


def contradicted(values: Mapping[str, float]) -> bool:
    """Whether the user wrote every setting that the case is about, and the case's own rule says that it is not so."""
    return values["rule_clear"] > 0 and values["settings"] >= 1.0


def _competing(
    candidates: Sequence[Candidate], values: Sequence[Mapping[str, float]], none: Mapping[str, float], weights: Weights
) -> tuple[float, ...]:
    """The candidates' probabilities. A secondary case (it explains a display, not a cause) gets what the others leave,
    and never more than the best of them.

    It competes as an equal only where no other cause is worth asking about and no check speaks for one.
    """
    first = [n for n, candidate in enumerate(candidates) if not candidate.cause.secondary]
    whole = weights.probabilities(values, none)
    if len(first) == len(candidates):
        return whole
    alone = dict(zip(first, weights.probabilities([values[n] for n in first], none), strict=True))
    found = [p for n, p in alone.items() if p >= ASK or (values[n]["rule_fired"] >= PROOF and p >= weights.plausible)]
    if not found:
        return whole
    left = max(0.0, 1.0 - sum(alone.values()))
    return tuple(alone.get(n, min(whole[n] * left, max(found) - 1e-6)) for n in range(len(candidates)))


def _place(cause: Case, context: Context) -> Place | None:
    """The place for which most speaks."""

    def weight(place: Place) -> tuple[float, str, str]:
        weighed = context.weighed.get(place.mechanism)
        if weighed is None:
            return (0.0, place.mechanism, place.origin)
        holds = any(state.value is True for state in weighed.origins if state.origin.id == place.origin)
        net = weighed.support - weighed.contradiction - 4.0 * bool(weighed.excluded_by) + holds
        return (net, place.mechanism, place.origin)

    return max(context.placed(cause.id), key=weight, default=None)


def _joined(causes: Sequence[Cause]) -> list[Cause]:
    """The causes of one origin as one: as likely as all of them, told by the one that fits this run best."""
    groups: dict[tuple[str, str], list[Cause]] = defaultdict(list)
    for cause in causes:
        place = cause.place
        own = ("", cause.case.id) if place is None or not place.origin else (place.mechanism, place.origin)
        groups[own].append(cause)
    return [_teller(members) for members in groups.values()]


def _teller(members: Sequence[Cause]) -> Cause:
    if len(members) == 1:
        return members[0]
    ranked = _ranked(members)
    fitting = [cause for cause in ranked if not any(cause.features[name] for name in CLASHES)]
    # A page says the same as its origin in full.
    teller = min(fitting or ranked, key=lambda cause: (_supposes_release(cause), cause.case.level == "origin"))
    others = tuple(cause for cause in ranked if cause is not teller)
    return replace(teller, probability=sum(cause.probability for cause in members), members=others)


def _supposes_release(cause: Cause) -> bool:
    """Whether a cause is the defect of a release of which the evidence does not show that it runs."""
    return cause.case.level == "defect" and not (cause.features["version_inside"] or cause.features["message"])


def _ranked(causes: Sequence[Cause]) -> list[Cause]:
    return sorted(causes, key=lambda cause: (-round(cause.probability, 9), cause.case.id))


def _confidence(cause: Cause, context: Context, weights: Weights) -> Confidence:
    """High and medium are promises: not where what was pasted contradicts the case, nor where nothing was trained.

    Nor where the source is only a claim. High is none either where only names and a symptom are given, where the
    evidence speaks against the mechanism, where the time-outs of a hang are all that shows it, or where it is not known
    that the release has the defect and its message is not printed.
    """
    word = weights.confidence(cause.probability)
    if cause.features["rule_fired"] >= PROOF and cause.probability >= SHOWN:
        # What a rule of its own found in the paste is more than likeness.
        word = "high" if cause.probability >= PROVEN else "medium" if word == "low" else word
    claimed = cause.case.evidence == "reported"
    if contradicted(cause.features) or context.intent.out_of_scope or claimed:
        return "low"
    against = cause.features["contradiction"] > cause.features["support"] or cause.features["excluded"]
    unproven = cause.case.level == "defect" and not (cause.features["version_inside"] and cause.features["message"])
    held = context.facts.verdict
    timed_out = held is not None and not held.sure and cause.features["rule_fired"] > 0
    doubtful = context.intent.bare or against or unproven or timed_out or cause.features["already_so"]
    return "medium" if doubtful and word == "high" else word


def _mechanisms(causes: Sequence[Cause], context: Context) -> tuple[MechanismBelief, ...]:
    members: dict[str, list[Cause]] = defaultdict(list)
    for cause in causes:
        if cause.place is not None:
            members[cause.place.mechanism].append(cause)
    beliefs = [
        MechanismBelief(
            weighed=context.weighed[mechanism],
            probability=sum(cause.probability for cause in listed),
            causes=tuple(listed),
        )
        for mechanism, listed in members.items()
        if mechanism in context.weighed
    ]
    return tuple(sorted(beliefs, key=lambda belief: (-round(belief.probability, 9), belief.id)))
