"""What speaks for and against one case, as numbers: the features that the ranking weights are fitted over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from trainmedic.kb.model.case import Case
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.report import Finding, Report, Severity, Status
from trainmedic.kb.model.run import Recognised, VersionFact
from trainmedic.kb.parse.signal_kinds import NON_FINITE
from trainmedic.kb.versions import Interval, holds, interval_holds, parse_range, parse_version
from trainmedic.service.question.intent import Intent

GROUPS: tuple[frozenset[str], ...] = (
    NON_FINITE,
    frozenset({"loss_flat", "accuracy_stuck", "grad_norm_zero", "loss_zero", "reward_flat", "learning_rate_zero"}),
    frozenset({"loss_spike", "loss_diverging", "grad_norm_spike"}),
    frozenset({"kl_negative", "kl_huge", "kl_zero", "kl_nan"}),
    frozenset({"logits_huge", "logits_nan"}),
    frozenset({"oom", "cpu_oom_killed"}),
    frozenset({"nccl_timeout", "nccl_error", "hang", "connection_error"}),
    frozenset({"reward_collapse", "reward_std_zero", "reward_flat", "entropy_collapse"}),
    frozenset({"length_collapse", "length_explosion", "never_stops", "repeats"}),
    frozenset({"unrecognized_argument", "assertion", "not_implemented", "value_error", "type_error", "key_error"}),
    frozenset({"missing_module", "import_error"}),
)
"""Symptoms that users and logs use one for another. Within a group a match counts `SAME_GROUP`."""
SAME_GROUP = 0.6
ODD_BUT_HARMLESS = frozenset({"kl_zero", "loss_negative", "lr_in_warmup", "margins_rising"})
"""Signals that alone are no fault: KL is clamped at zero, a policy loss has no sign, and so on."""
SEVERITY_WEIGHT = {Severity.ERROR: 1.0, Severity.WARNING: 0.75, Severity.INFO: 0.6}
UNRELATED = 0.1
"""What is left of a fired rule's weight where its symptoms are not those asked about."""

NAMES = (
    "rule_fired",
    "rule_unsure",
    "rule_clear",
    "retrieval",
    "lead",
    "words",
    "words_ahead",
    "meaning",
    "meaning_ahead",
    "concepts",
    "focus",
    "denied",
    "symptom",
    "symptom_missed",
    "framework_match",
    "framework_clash",
    "algorithm_match",
    "algorithm_clash",
    "family_match",
    "family_clash",
    "family_unsaid",
    "version_inside",
    "version_outside",
    "settings",
    "healthy_log",
)
"""Every feature, in the order of the weights."""
NONE_NAMES = ("vague", "reassurance", "complaint", "healthy", "options", "log", "traceback", "length", "symptoms")
"""What speaks for or against "none of the cases", in the order of the weights: how much was said and shown."""
LONG = 400
"""Width of a question that says enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One candidate as ranking sees it: ``score`` relative to the best hit (0 to 1), ``lead`` 1 for the first.

    ``words`` and ``meaning`` as in `service.ranking.retrieve.Hit`; ``words_ahead`` and ``meaning_ahead`` are their
    margins over the best other candidate, negative behind it.
    """

    case: Case
    score: float
    lead: float
    words: float = 0.0
    meaning: float = 0.0
    words_ahead: float = 0.0
    meaning_ahead: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What all candidates of one question share."""

    evidence: Evidence
    report: Report
    intent: Intent
    concepts: Mapping[str, float]  # concept id → weight (inverse document frequency over the cases)
    case_concepts: Mapping[str, frozenset[str]]
    case_titles: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def symptoms(self) -> frozenset[str]:
        """The failure signals, seen or stated."""
        return self.intent.symptoms

    @property
    def healthy_log(self) -> bool:
        """A log was pasted (not numbers quoted in prose), and nothing in it is out of the ordinary."""
        return self.evidence.has("healthy_log") and any(row.style != "user" for row in self.evidence.rows)

    @property
    def observed(self) -> frozenset[str]:
        """The symptoms that a log or traceback shows; the others were only said."""
        return frozenset(s.kind for s in self.evidence.signals if not s.stated) & self.symptoms


def overlap(left: Sequence[str] | frozenset[str], right: Sequence[str] | frozenset[str]) -> float:
    """How well two sets of symptoms agree: 1 for a common one, `SAME_GROUP` for kin, else 0."""
    if set(left) & set(right):
        return 1.0
    kin = any(group & set(left) and group & set(right) for group in GROUPS)
    return SAME_GROUP if kin else 0.0


def finding_weight(finding: Finding, symptoms: frozenset[str]) -> float:
    """How much a fired finding says about the question asked: its severity, if its symptoms are those asked about."""
    weight = SEVERITY_WEIGHT[finding.severity]
    if not symptoms or not finding.symptoms:
        return weight
    agreement = overlap(finding.symptoms, symptoms)
    return weight * max(agreement, UNRELATED)


def features(scored: Scored, context: Context) -> Mapping[str, float]:
    """All of `NAMES` for one candidate."""
    case, evidence, report = scored.case, context.evidence, context.report
    run = evidence.run
    mine = [finding for finding in report.findings if case.id in finding.cases]
    fired = [finding_weight(f, context.symptoms) for f in mine if f.status is Status.FIRED]
    unsure = [finding_weight(f, context.symptoms) for f in mine if f.status is Status.CANNOT_TELL]
    clear = not mine and any(rule in report.ruled_out for rule in case.rules) and bool(run.options)
    asked = sum(context.concepts.values())
    own = context.case_concepts.get(case.id, frozenset())
    common = sum(weight for concept, weight in context.concepts.items() if concept in own)
    agreement = overlap(case.signals, context.symptoms) if context.symptoms and case.signals else 0.0
    inside, outside = _versions(case, evidence.versions)
    written = {name for name, setting in run.settings.items() if setting.option is not None}
    values = {
        "rule_fired": max(fired, default=0.0),
        "rule_unsure": max(unsure, default=0.0),
        "rule_clear": float(clear),
        "retrieval": scored.score,
        "lead": scored.lead,
        "words": scored.words,
        "words_ahead": scored.words_ahead,
        "meaning": scored.meaning,
        "meaning_ahead": scored.meaning_ahead,
        "concepts": common / asked if asked else 0.0,
        "focus": min(1.0, common / 8.0),
        "denied": float(bool(context.intent.negated & context.case_titles.get(case.id, frozenset()))),
        "symptom": agreement,
        "symptom_missed": float(bool(context.symptoms) and bool(case.signals) and agreement == 0.0),
        "version_inside": float(inside),
        "version_outside": float(outside),
        "settings": _share(written, case.settings),
        "healthy_log": float(context.healthy_log and not context.observed),
    }
    for name, fact, known in (
        ("framework", run.framework, case.frameworks),
        ("algorithm", run.algorithm, case.algorithms),
        ("family", run.model_family, case.model_families),
    ):
        values[f"{name}_match"] = float(fact is not None and fact.value in known)
        values[f"{name}_clash"] = float(_clash(fact, known))
    if run.model is not None and run.model_family is None and case.model_families:
        values["family_clash"] = 1.0  # a model of no family we know is none of those named
    values["family_unsaid"] = float(bool(case.model_families) and run.model is None and run.model_family is None)
    return MappingProxyType({name: values[name] for name in NAMES})


def none_features(context: Context) -> Mapping[str, float]:
    """All of `NONE_NAMES` for one question."""
    run = context.evidence.run
    values = (
        float(context.intent.vague),
        float(context.intent.asks_if_normal),
        float(context.intent.complains),
        float(context.healthy_log and not context.observed),
        float(bool(run.options)),
        float(bool(context.evidence.rows)),
        float(bool(context.evidence.tracebacks)),
        min(context.intent.width, LONG) / LONG,
        float(bool(context.symptoms)),
    )
    return MappingProxyType(dict(zip(NONE_NAMES, values, strict=True)))


def in_range(fact: VersionFact, affected: str) -> bool | None:
    """Whether a version, known exactly or between bounds, lies in a range; None where that cannot be told."""
    exact = parse_version(fact.exact)
    if exact is not None:
        return holds(exact, parse_range(affected))
    return interval_holds(Interval(parse_version(fact.low), parse_version(fact.high)), parse_range(affected))


def _clash(fact: Recognised | None, known: Sequence[str]) -> bool:
    return fact is not None and bool(known) and fact.value not in known


def _share(written: set[str], involved: Sequence[str]) -> float:
    return len(written & set(involved)) / len(involved) if involved else 0.0


def _versions(case: Case, versions: Mapping[str, VersionFact]) -> tuple[bool, bool]:
    """Whether a known version lies inside the case's affected range, and whether one certainly lies outside."""
    inside = outside = False
    for package, affected in case.affected.items():
        fact = versions.get(package)
        verdict = None if fact is None else in_range(fact, affected)
        inside, outside = inside or verdict is True, outside or verdict is False
    return inside, outside
