"""Report and hits to a verdict: which causes, how sure, and what to ask. Deterministic; no model, no I/O."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainmedic.kb.frameworks.profiles import profiles
from trainmedic.kb.messages import load_messages
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.report import Finding, Missing, Severity, Status
from trainmedic.service.answer import Confidence, Verdict
from trainmedic.service.ranking.features import (
    ODD_BUT_HARMLESS,
    Context,
    Scored,
    features,
    finding_weight,
    none_features,
    overlap,
)
from trainmedic.service.ranking.weights import Weights

messages = load_messages("trainmedic.service.ranking")
MAX_MISSING = 4
FOCUSED = 0.4
"""The least overlap of the question's own concepts with a case's, for a question that names no symptom."""
TOLERATED = frozenset({"rows_thinned", "typographic", "missing_backslash", "no_blank_before_backslash", "truncated"})
"""Problems of reading that lose nothing a rule would have looked at."""
ASK = 0.15
"""The least probability of a first cause for which asking back is worth it."""
TROUBLED = 0.4
"""The least probability of a first cause for which a paste without any failure is not called healthy, nor a question
in few words of our field one of another."""
STANDALONE = frozenset(profile.name for profile in profiles().values() if profile.standalone)
"""Frameworks that no other one runs on: the version of one says nothing about a run of another."""
CERTAIN = 0.55
"""The least weight (`finding_weight`) of a fired finding that decides by itself."""
LIKELY = 0.3
"""The least probability of a first cause that is already named while asking back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One candidate with its calibrated probability and what speaks for it."""

    case: Case
    probability: float
    confidence: Confidence
    findings: tuple[Finding, ...]
    features: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The verdict about the question, with everything that an answer needs to decide what it shows.

    ``causes`` are best first, ``missing`` holds the most informative fact first. ``findings`` are the fired ones, those
    about the symptoms of the question first; ``related`` are those of them that are about these symptoms.
    """

    verdict: Verdict
    causes: tuple[Cause, ...]
    missing: tuple[Missing, ...]
    findings: tuple[Finding, ...] = ()
    related: tuple[Finding, ...] = ()

    @property
    def lead(self) -> Cause | None:
        """The cause that the answer is about, or None if it names none.

        An explanation of why nothing is wrong leads only if a rule found it or if it is likely.
        """
        if not self.causes or self.verdict not in ("answered", "no_fault"):
            return None
        first = self.causes[0]
        if self.verdict == "answered" or first.confidence != "low":
            return first
        return first if any(finding.status is Status.FIRED for finding in first.findings) else None

    @property
    def likely(self) -> Cause | None:
        """The first cause of an answer that asks back, if it is clearly ahead of the second; else None."""
        if self.verdict != "need_input" or not self.causes:
            return None
        first, *rest = self.causes
        second = rest[0].probability if rest else 0.0
        # A high probability with low confidence means that the pasted text contradicts the case.
        return first if first.confidence != "low" and first.probability >= max(LIKELY, 2 * second) else None


def diagnose(candidates: Sequence[Scored], context: Context, weights: Weights, top_k: int = 5) -> Diagnosis:
    """Rank the candidates and decide what the answer is.

    A finding that fired decides over retrieval; a finding unrelated to the symptoms asked about does not make
    the verdict (it is listed all the same).
    """
    ranked = rank(candidates, context, weights)
    plausible = tuple(cause for cause in ranked if cause.probability >= weights.plausible)[:top_k]
    verdict = _verdict(ranked, context, weights)
    settled = (
        verdict == "answered" and plausible[0].features["rule_fired"] >= CERTAIN and plausible[0].confidence == "high"
    )
    missing = () if settled or verdict in ("no_fault", "not_in_kb") else _missing(plausible, context)
    if verdict == "not_in_kb":
        plausible = ()
    if verdict == "no_fault":
        plausible = tuple(cause for cause in plausible if cause.case.kind == "artefact")
    fired = context.report.fired
    return Diagnosis(
        verdict=verdict,
        causes=plausible,
        missing=missing,
        findings=tuple(sorted(fired, key=lambda finding: _telling(finding, context))),
        related=tuple(finding for finding in fired if relevant(finding, context)),
    )


def _telling(finding: Finding, context: Context) -> tuple[float, int, str]:
    """Sort key: findings about the question first, then by severity."""
    return -finding_weight(finding, context.symptoms), list(Severity).index(finding.severity), finding.rule_id


def rank(candidates: Sequence[Scored], context: Context, weights: Weights) -> tuple[Cause, ...]:
    """All candidates, most probable first; ties by id."""
    causes = []
    given = sorted(candidates, key=lambda scored: scored.case.id)
    found = [features(scored, context) for scored in given]
    chances = competing(given, found, context, weights)
    for scored, values, probability in zip(given, found, chances, strict=True):
        mine = tuple(f for f in context.report.findings if scored.case.id in f.cases)
        causes.append(
            Cause(
                case=scored.case,
                probability=probability,
                confidence=_bounded(weights.confidence(probability), values, context),
                findings=mine,
                features=values,
            )
        )
    return tuple(sorted(causes, key=lambda cause: (-round(cause.probability, 9), cause.case.id)))


def _bounded(confidence: Confidence, values: Mapping[str, float], context: Context) -> Confidence:
    """High and medium are promises: not where what was pasted contradicts the case, nor where nothing was trained.

    High is none either where only the names and a symptom are given.
    """
    if _contradicted(values) or context.intent.out_of_scope:
        return "low"
    return "medium" if context.intent.bare and confidence == "high" else confidence


def competing(
    given: Sequence[Scored], found: Sequence[Mapping[str, float]], context: Context, weights: Weights
) -> tuple[float, ...]:
    """The candidates' probabilities. A secondary case (it explains a display, not a cause) gets what the others leave.

    It competes as an equal only where no other case is worth asking about.
    """
    first = [n for n, scored in enumerate(given) if not scored.case.secondary]
    none = none_features(context)
    alone = dict(zip(first, weights.probabilities([found[n] for n in first], none), strict=True))
    whole = weights.probabilities(found, none)
    if max(alone.values(), default=0.0) < ASK:
        return whole
    left = max(0.0, 1.0 - sum(alone.values()))
    return tuple(alone.get(n, whole[n] * left) for n in range(len(given)))


def _verdict(ranked: Sequence[Cause], context: Context, weights: Weights) -> Verdict:
    first = ranked[0] if ranked else None
    if context.intent.domain_score < weights.field and (first is None or first.probability < TROUBLED):
        return "not_in_kb"
    if context.intent.out_of_scope and not _failed(first, context):
        # Bad answers may be the training's doing; nothing says so, and nothing says that there was any.
        worth_asking = context.intent.bad_output and first is not None and first.probability >= ASK
        return "need_input" if worth_asking else "not_in_kb"
    if first is not None and _convincing(first, context, weights) and _called_for(first, context):
        return "no_fault" if first.case.kind == "artefact" else "answered"
    if _healthy(context) and not _troubled(first, context):
        return "no_fault"
    if first is not None and first.probability >= ASK:
        return "need_input"
    return "need_input" if _could_say_more(context) else "not_in_kb"


def _failed(first: Cause | None, context: Context) -> bool:
    """Whether a pasted failure is likely enough that of a case, though no training is spoken of."""
    pasted = bool(context.evidence.tracebacks or context.observed)
    return pasted and first is not None and first.probability >= TROUBLED


def _convincing(cause: Cause, context: Context, weights: Weights) -> bool:
    """Likely enough, or proven by a rule: an error or warning that fired on what was asked about."""
    likely = cause.probability >= weights.answer and not _contradicted(cause.features)
    if likely and not (context.intent.bare and cause.case.kind == "fault"):
        return True
    proven = (
        f.status is Status.FIRED and f.severity is not Severity.INFO and finding_weight(f, context.symptoms) >= CERTAIN
        for f in cause.findings
    )
    return cause.probability >= ASK and any(proven)


def _contradicted(values: Mapping[str, float]) -> bool:
    """Whether the user wrote every setting that the case is about, and the case's own rule says that it is not so."""
    return values["rule_clear"] > 0 and values["settings"] >= 1.0


def _called_for(cause: Cause, context: Context) -> bool:
    """Likeness of the pasted facts alone must not blame a run that nobody complains about.

    Then the question itself must speak of what the case is about, or a rule must have fired.
    """
    if context.intent.complains or cause.features["focus"] >= FOCUSED:
        return True
    return any(f.status is Status.FIRED and relevant(f, context) for f in cause.findings)


def _healthy(context: Context) -> bool:
    """Something was there to look at, and nothing in it is failing.

    What is only said to fail counts, unless the question merely asks whether a log without trouble is normal.
    """
    evidence = context.evidence
    if any(problem.code not in TOLERATED for problem in evidence.receipt.problems):
        return False  # what could not be read cannot be called healthy
    if context.intent.says_failed and not (context.healthy_log or context.intent.asks_if_normal):
        return False  # something failed, and no log shows what
    logged = any(row.style != "user" for row in evidence.rows)
    if not (logged or evidence.run.options) or evidence.tracebacks:
        return False
    # Within the warm-up the learning rate is next to nothing: a loss that does not move yet is as it must be.
    excused = ODD_BUT_HARMLESS | ({"loss_flat"} if evidence.has("lr_in_warmup") else frozenset())
    if context.observed - excused:
        return False
    if context.symptoms - excused and not (context.healthy_log and context.intent.asks_if_normal):
        return False
    return not any(f.severity is not Severity.INFO for f in context.report.fired if f.concludes == "fault")


def _troubled(first: Cause | None, context: Context) -> bool:
    """Whether a fault is likely although nothing pasted is failing: much that goes wrong shows in no number."""
    if first is None or first.case.kind == "artefact" or context.intent.asks_if_normal:
        return False
    # A log without trouble says more for the run than a configuration in which nothing is found.
    return first.probability >= (TROUBLED if context.healthy_log else ASK)


def _could_say_more(context: Context) -> bool:
    """Whether the knowledge may hold the answer once more is known: little was said, or a failure's log is absent."""
    evidence = context.evidence
    if evidence.receipt.problems and evidence.run.partial:
        return True
    if not (evidence.run.options or evidence.rows or evidence.tracebacks):
        return context.intent.vague
    whole = bool(evidence.run.options) and bool(evidence.rows or evidence.tracebacks)
    return bool(context.symptoms or context.intent.says_failed) and not whole


def _missing(causes: Sequence[Cause], context: Context) -> tuple[Missing, ...]:
    """What to ask, most separating first, each fact once."""
    asks: dict[str, tuple[float, int, Missing]] = {}
    questions: list[tuple[float, Missing]] = []
    for cause in causes:
        for finding in cause.findings:
            weight = cause.probability * max(overlap(finding.symptoms, context.symptoms), 0.2)
            questions += [(weight, missing) for missing in finding.missing]
        questions += [
            (0.5 * cause.probability, Missing(fact=ask.fact, why=ask.why, ask=ask.ask)) for ask in cause.case.ask
        ]
    questions += [(0.05, missing) for missing in GENERIC]
    for weight, missing in questions:
        if known(missing.fact, context.evidence) or _pointless(missing.fact, context.evidence):
            continue
        gain = information_gain(missing.fact, causes) + weight
        if missing.fact not in asks or gain > asks[missing.fact][0]:
            asks[missing.fact] = (gain, len(asks), missing)
    ordered = sorted(asks.values(), key=lambda item: (-round(item[0], 9), item[1]))
    return tuple(missing for _, _, missing in ordered[:MAX_MISSING])


def _pointless(fact: str, evidence: Evidence) -> bool:
    """A setting is no sensible question while the whole configuration is absent, nor a version without a framework.

    Nor is the version of a framework that this run does not use.
    """
    run = evidence.run
    kind, _, name = fact.partition(":")
    if kind == "setting":
        return not run.options
    if kind != "version":
        return False
    if run.framework is None:
        return not evidence.versions and not run.options
    return name in STANDALONE and name != run.framework.value and name not in evidence.versions


def information_gain(fact: str, causes: Sequence[Cause]) -> float:
    """Bits that knowing ``fact`` is expected to give about which cause it is.

    Each cause says what value of the fact it goes with; the gain is the entropy of that grouping.
    """
    groups: dict[tuple[str, ...], float] = defaultdict(float)
    total = sum(cause.probability for cause in causes)
    if total <= 0:
        return 0.0
    for cause in causes:
        groups[_signature(fact, cause.case)] += cause.probability / total
    return -sum(p * math.log2(p) for p in groups.values() if p > 0)


def _signature(fact: str, case: Case) -> tuple[str, ...]:
    kind, _, name = fact.partition(":")
    if fact == "framework":
        return case.frameworks
    if fact == "algorithm":
        return case.algorithms
    if fact in ("model", "model_family"):
        return case.model_families
    if kind == "version":
        return (case.affected.get(name, ""),)
    if kind == "setting":
        return (str(name in case.settings),)
    if fact == "log":
        return case.signals
    if fact == "config":
        return case.settings
    return ()


def known(fact: str, evidence: Evidence) -> bool:
    """Whether the paste already holds this fact."""
    run = evidence.run
    kind, _, name = fact.partition(":")
    if kind == "version":
        return name in evidence.versions and evidence.versions[name].exact is not None
    if kind == "setting":
        return name in run.settings
    answers = {
        "framework": run.framework is not None,
        "algorithm": run.algorithm is not None,
        "model": run.model is not None or run.model_family is not None,
        "model_family": run.model_family is not None,
        "log": bool(evidence.rows or evidence.tracebacks),
        "config": bool(run.options),
    }
    return answers.get(fact, False)


def relevant(finding: Finding, context: Context) -> bool:
    """Whether a fired finding is about the symptoms asked about."""
    return finding_weight(finding, context.symptoms) >= CERTAIN * 0.5


GENERIC: tuple[Missing, ...] = tuple(
    Missing(fact=fact, why=messages.both(f"{fact}.why"), ask=messages.both(f"{fact}.ask"))
    for fact in ("config", "log", "framework", "algorithm", "model")
)
