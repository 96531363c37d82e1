"""Evidence for and against one case, as numbers: the features that the ranking weights are fitted over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import MappingProxyType

from trainmedic.kb.engine.facts import FactBook, Facts
from trainmedic.kb.engine.mechanism import COMMONNESS, Weighed
from trainmedic.kb.engine.version_ranges import within
from trainmedic.kb.frameworks.canonical import name_of
from trainmedic.kb.frameworks.profiles import BASE, SCRIPTED, profiles
from trainmedic.kb.frameworks.values import truth
from trainmedic.kb.glossary.terms import Concept
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.evidence import Evidence, Remedy
from trainmedic.kb.model.report import Finding, Report, Severity, Status
from trainmedic.kb.model.run import Recognised
from trainmedic.kb.parse.logs.signal_kinds import NON_FINITE
from trainmedic.kb.threads.thread import Reported, SimilarThread
from trainmedic.service.dialogue.intent import Intent
from trainmedic.service.ranking.fix_values import WrittenOptions, already_written, fix_values, written_options

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
"""Groups of interchangeable symptoms. Within a group a match counts `SAME_GROUP`."""
_GROUPS_OF: Mapping[str, tuple[int, ...]] = {
    kind: tuple(number for number, group in enumerate(GROUPS) if kind in group) for kind in frozenset().union(*GROUPS)
}
SAME_GROUP = 0.6
ODD_BUT_HARMLESS = frozenset({"kl_zero", "loss_negative", "lr_in_warmup", "margins_rising"})
"""Signals that alone are not faults: KL is clamped at zero, a policy loss has no sign, and so on."""
SEVERITY_WEIGHT = {Severity.ERROR: 1.0, Severity.WARNING: 0.75, Severity.INFO: 0.6}
UNRELATED = 0.1
"""Share of a fired rule's weight where its symptoms are not those asked about."""

FOR = (
    *("fused", "page", "pasted_agreed", "mechanism_fused", "concepts", "focus"),
    *("symptom", "predicted"),
    *("support", "holds", "rule_fired", "rule_unsure", "framework_match", "algorithm_match", "family_match"),
    *("version_inside", "settings", "helped", "common", "message", "reported"),
)
"""Evidence for a candidate."""
AGAINST = (
    *("rule_clear", "denied", "symptom_missed", "contradiction", "excluded", "fails", "framework_clash"),
    *("framework_unsaid", "presupposed"),
    *("algorithm_clash", "family_clash", "version_outside", "worked_before", "tried", "already_so", "healthy_log"),
)
"""Evidence against a candidate."""
EITHER = ("is_origin", "is_mechanism", "is_defect")
"""Features of what a candidate commits to, compared with a case; may count either way."""
SETUP = frozenset({"component", "algorithm", "model", "hardware", "setting", "data"})
"""Kinds of concepts that are part of a set-up."""
LOGS = frozenset({"log", "metrics", "traceback"})
"""Kinds of text that a run printed."""
ENOUGH = 2.0
"""The weight of observations for or against a mechanism that counts as one; more than twice as much says no more."""
NAMES = (*FOR, *AGAINST, *EITHER)
"""Every feature, in the order of the weights."""
NONE_FOR = ("vague", "reassurance", "healthy", "request")
"""Evidence for "something else than any candidate": little was said, or nothing is said to be wrong."""
NONE_AGAINST = ("complaint", "options", "log", "length")
"""Evidence against it: how much was said and shown."""
NONE_NAMES = (*NONE_FOR, *NONE_AGAINST)
LONG = 400
"""Width of a question that says enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A mechanism and, if the cause has one, the origin there."""

    mechanism: str
    origin: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One cause as ranking sees it, with its scores from 0 to 1 as in `service.ranking.retrieve.Hit`; ``mechanism`` is
    the fused score of its mechanism."""

    cause: Case
    fused: float = 0.0
    page: float = 0.0
    words: float = 0.0
    pasted: float = 0.0
    mechanism: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DefectState:
    """A known defect on this evidence: whether its condition holds (None: cannot be told, or it has none), and whether
    what it prints was pasted."""

    value: bool | None
    printed: bool


@dataclass(frozen=True, kw_only=True)
class Context:
    """Data shared by all candidates of one question. What is worked out of it is so once."""

    evidence: Evidence
    report: Report
    intent: Intent
    concepts: Mapping[str, float]  # concept id → weight (inverse document frequency over the cases)
    case_concepts: Mapping[str, frozenset[str]]
    case_titles: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    weighed: Mapping[str, Weighed] = field(default_factory=lambda: MappingProxyType({}))  # by mechanism id
    places: Mapping[str, tuple[Place, ...]] = field(default_factory=lambda: MappingProxyType({}))  # by cause id

    named: frozenset[str] = frozenset()  # frameworks that the question or the paste names
    unsaid: frozenset[str] = frozenset()  # optional packages of which neither shows a sign
    pasted_concepts: frozenset[str] = frozenset()  # glossary concepts of the paste
    glossary: Mapping[str, Concept] = field(default_factory=lambda: MappingProxyType({}))
    defects: Mapping[str, DefectState] = field(default_factory=lambda: MappingProxyType({}))  # by cause id
    similar: tuple[SimilarThread, ...] = ()  # ingested threads like the question, most alike first
    reports: Mapping[str, Reported] = field(default_factory=lambda: MappingProxyType({}))  # by cause and mechanism id
    book: FactBook | None = None  # the facts of the evidence, if they have been read

    @property
    def facts(self) -> Facts:
        """The facts of the run that the question is about, with what the question says."""
        return (self.book or FactBook(self.evidence, said_concepts(self.intent))).main

    def placed(self, cause_id: str) -> tuple[Place, ...]:
        """Where a cause belongs; empty for one that no mechanism names."""
        return self.places.get(cause_id, ())

    def reported(self, cause_id: str) -> Reported | None:
        """Reports of resolved threads on a cause or a mechanism that it belongs to; the one with most support."""
        names = (cause_id, *(place.mechanism for place in self.placed(cause_id)))
        found = [self.reports[name] for name in names if name in self.reports]
        return max(found, key=lambda report: report.weight, default=None)

    @cached_property
    def symptoms(self) -> frozenset[str]:
        """The failure signals, seen or stated."""
        return self.intent.symptoms

    @cached_property
    def healthy_log(self) -> bool:
        """A log was pasted (not numbers quoted in prose), and nothing in it is out of the ordinary."""
        return self.evidence.has("healthy_log") and any(row.style != "user" for row in self.evidence.rows)

    @cached_property
    def observed(self) -> frozenset[str]:
        """The symptoms that a log or traceback shows; the others were only said."""
        return frozenset(s.kind for s in self.evidence.signals if not s.stated) & self.symptoms

    @cached_property
    def asked(self) -> float:
        """The weight of all concepts together."""
        return sum(self.concepts.values())

    @cached_property
    def written(self) -> frozenset[str]:
        """The settings that the configuration writes."""
        settings = self.evidence.run.settings
        return frozenset(name for name, setting in settings.items() if setting.option is not None)

    @cached_property
    def options(self) -> WrittenOptions:
        """The options as fixes name them."""
        return written_options(self.evidence.run.options)

    @cached_property
    def fired(self) -> frozenset[str]:
        """The rules that fired."""
        return frozenset(finding.rule_id for finding in self.report.fired)


def said_concepts(intent: Intent) -> frozenset[str]:
    """The concepts that the question names without denying them."""
    return frozenset(intent.concepts) - intent.negated


def overlap(left: Sequence[str] | frozenset[str], right: Sequence[str] | frozenset[str]) -> float:
    """How well two sets of symptoms agree: 1 for a common one, `SAME_GROUP` for kin, else 0."""
    if not set(left).isdisjoint(right):
        return 1.0
    groups = {number for kind in left for number in _GROUPS_OF.get(kind, ())}
    kin = bool(groups) and any(number in groups for kind in right for number in _GROUPS_OF.get(kind, ()))
    return SAME_GROUP if kin else 0.0


def finding_weight(finding: Finding, context: Context) -> float:
    """How much a fired finding says about the question asked: its severity, if its symptoms are those asked about.

    What a log itself says is never unrelated to a question that comes with this log.
    """
    weight = SEVERITY_WEIGHT[finding.severity]
    if not context.symptoms or not finding.symptoms:
        return weight
    agreement = overlap(finding.symptoms, context.symptoms)
    if agreement == 0.0 and finding.severity is not Severity.INFO and shown_by_log(finding, context.evidence):
        return weight * SAME_GROUP
    return weight * max(agreement, UNRELATED)


def shown_by_log(finding: Finding, evidence: Evidence) -> bool:
    """Whether a finding rests on a line of a log or a traceback and not on the configuration alone."""
    logs = [(region.source, region.start_line, region.end_line) for region in evidence.regions if region.kind in LOGS]
    return any(
        span.attachment == source and start <= span.line <= end
        for span in finding.evidence
        if not span.default
        for source, start, end in logs
    )


def features(candidate: Candidate, context: Context) -> Mapping[str, float]:
    """All of `NAMES` for one candidate."""
    case, evidence, report = candidate.cause, context.evidence, context.report
    run = evidence.run
    mine = findings_of(case, report)
    fired = [finding_weight(f, context) for f in mine if f.status is Status.FIRED]
    unsure = [finding_weight(f, context) for f in mine if f.status is Status.CANNOT_TELL]
    clear = not mine and any(rule in report.ruled_out for rule in case.rules) and bool(run.options)
    asked = context.asked
    own = context.case_concepts.get(case.id, frozenset())
    common = sum(weight for concept, weight in context.concepts.items() if concept in own)
    agreement = overlap(case.signals, context.symptoms) if context.symptoms and case.signals else 0.0
    values = {
        "fused": candidate.fused,
        "page": candidate.page,
        "pasted_agreed": min(max(candidate.page, candidate.words), candidate.pasted),
        "mechanism_fused": candidate.mechanism,
        "rule_fired": max(fired, default=0.0),
        "rule_unsure": max(unsure, default=0.0),
        "rule_clear": float(clear),
        "concepts": common / asked if asked else 0.0,
        "focus": min(1.0, common / 8.0),
        "denied": float(bool(context.intent.negated & context.case_titles.get(case.id, frozenset()))),
        "symptom": agreement,
        "symptom_missed": float(bool(context.symptoms) and bool(case.signals) and agreement == 0.0),
        "settings": _share(context.written, case.settings),
        "healthy_log": float(context.healthy_log and not context.observed),
        "framework_unsaid": float(case.level in ("case", "defect") and _unsaid(case, context)),
        "presupposed": _presupposed(case, context),
        **_of_mechanism(case, context),
        **_of_versions(case, evidence),
        "message": float(context.defects[case.id].printed if case.id in context.defects else False),
        "reported": said.weight if (said := context.reported(case.id)) is not None else 0.0,
        **_of_remedies(case, context),
        "is_origin": float(case.level == "origin"),
        "is_mechanism": float(case.level == "mechanism"),
        "is_defect": float(case.level == "defect"),
    }
    if (defect := context.defects.get(case.id)) is not None and defect.value is not None:
        values["holds" if defect.value else "fails"] = 1.0
    if (shown := _shown(case, mine, context)) > 0.0:
        values |= {"support": 2.0 * shown, "holds": shown, "message": shown}
    for name, fact, known in (
        ("framework", run.framework, case.frameworks),
        ("algorithm", run.algorithm, case.algorithms),
        ("family", run.model_family, case.model_families),
    ):
        values[f"{name}_match"] = float(fact is not None and fact.value in known)
        values[f"{name}_clash"] = float(_clash(fact, known))
    if values["framework_clash"] and not below(run.framework.value if run.framework else "").isdisjoint(
        case.frameworks
    ):
        values["framework_clash"] = 0.0  # the case is about a library that this framework runs on
    if run.model is not None and run.model_family is None and case.model_families:
        values["family_clash"] = 1.0  # a model of no family we know is none of those named
    return MappingProxyType({name: values[name] for name in NAMES})


def _shown(case: Case, findings: Sequence[Finding], context: Context) -> float:
    """How far a check that is its own cause shows it: no mechanism speaks for it, what it found does."""
    if context.placed(case.id):
        return 0.0
    own = [f for f in findings if f.rule_id == case.id and f.status is Status.FIRED and f.severity is not Severity.INFO]
    return max((finding_weight(finding, context) for finding in own), default=0.0)


def findings_of(case: Case, report: Report) -> tuple[Finding, ...]:
    """The findings that name a case, or that are of the rules of an origin or mechanism."""
    rules = case.rules if case.level in ("origin", "mechanism") else ()
    return tuple(f for f in report.findings if case.id in f.cases or f.rule_id in rules)


def _of_mechanism(case: Case, context: Context) -> dict[str, float]:
    """What the evidence says about the mechanisms and origins that a cause belongs to; the best of several."""
    best = {"support": 0.0, "contradiction": 0.0, "excluded": 0.0, "holds": 0.0, "fails": 0.0, "predicted": 0.0}
    best["common"] = 0.0
    ranked = []
    for place in context.placed(case.id):
        weighed = context.weighed.get(place.mechanism)
        if weighed is None:
            continue
        state = next((state for state in weighed.origins if state.origin.id == place.origin), None)
        # A rule of the origin that fired knows more than the origin's own condition.
        proven = state is not None and not context.fired.isdisjoint(state.origin.rules)
        values = {
            "support": min(2.0, weighed.support / ENOUGH),
            "contradiction": min(2.0, weighed.contradiction / ENOUGH),
            "excluded": float(bool(weighed.excluded_by)),
            "predicted": overlap(weighed.mechanism.predicts, context.symptoms) if context.symptoms else 0.0,
            "holds": float(state is not None and (state.value is True or proven)),
            "fails": float(state is not None and state.value is False and not proven),
            "common": COMMONNESS[state.origin.common] if state is not None and case.level == "origin" else 0.0,
        }
        if context.symptoms and not values["predicted"]:
            values["holds"] *= UNRELATED
        net = values["support"] + values["holds"] - values["contradiction"] - 2 * values["excluded"] - values["fails"]
        ranked.append((net, place.mechanism, place.origin, values))
    return max(ranked, key=lambda item: item[:3])[3] if ranked else best


def _of_versions(case: Case, evidence: Evidence) -> dict[str, float]:
    """Whether a known version lies in the affected range, certainly outside, or the run worked with an affected one."""
    inside = outside = before = False
    for package, affected in case.affected.items():
        fact, good = evidence.versions.get(package), evidence.known_good.get(package)
        verdict = None if fact is None else within(fact, affected)
        inside, outside = inside or verdict is True, outside or verdict is False
        before = before or (good is not None and within(good, affected) is True)
    return {"version_inside": float(inside), "version_outside": float(outside), "worked_before": float(before)}


def _of_remedies(case: Case, context: Context) -> dict[str, float]:
    """Whether the user tried what the cause asks for, and whether the fix is in the configuration already."""
    remedies = remedies_for(case, context)
    return {
        "tried": float(any(remedy.helped is False for remedy in remedies)),
        "helped": float(any(remedy.helped is True for remedy in remedies)),
        "already_so": float(already_written(fix_values(case), context.options)),
    }


def remedies_for(case: Case, context: Context) -> tuple[Remedy, ...]:
    """The remedies that concern a cause: by its settings, or by the concepts of its title if they name no setting.

    To have switched off what its fix switches on is none of its remedies, nor the reverse.
    """
    if not context.evidence.remedies:
        return ()
    titles = context.case_titles.get(case.id, frozenset())
    framework = context.evidence.run.framework
    fixes = {
        name_of(framework.value if framework is not None else None, name) or name: truth(value)
        for name, value in fix_values(case)
    }
    return tuple(
        remedy
        for remedy in context.evidence.remedies
        if (set(case.settings) & set(remedy.settings) or (not remedy.settings and titles & set(remedy.concepts)))
        and not any(fixes.get(name) is False for name in remedy.on)
        and not any(fixes.get(name) is True for name in remedy.off)
    )


def none_features(context: Context) -> Mapping[str, float]:
    """All of `NONE_NAMES` for one question."""
    evidence, intent = context.evidence, context.intent
    values = {
        "vague": float(intent.vague),
        "reassurance": float(intent.asks_if_normal),
        "healthy": float(context.healthy_log and not context.observed),
        "request": float(intent.requests),
        "complaint": float(intent.complains),
        "options": float(bool(evidence.run.options)),
        "log": float(bool(evidence.rows)),
        "length": min(intent.width, LONG) / LONG,
    }
    return MappingProxyType({name: values[name] for name in NONE_NAMES})


@cache
def below(framework: str) -> frozenset[str]:
    """The libraries that a framework runs on: what is wrong with them is wrong with it. For none: all libraries."""
    listed = profiles()
    libraries = {profile.name for profile in listed.values() if profile.kind == "library"}
    own = listed.get(framework)
    on_trainer = own is not None and BASE in (own.inherits, own.base)
    return frozenset(libraries.union(SCRIPTED if on_trainer else ()))


def _unsaid(case: Case, context: Context) -> bool:
    """Whether a case is about frameworks, or a defect about a library, of which neither the question nor the paste
    shows a sign."""
    if case.level == "defect" and not context.unsaid.isdisjoint(case.affected):
        return True
    run = context.evidence.run
    libraries = below(run.framework.value if run.framework is not None else "")
    if run.framework is None and not context.named:
        libraries |= set(SCRIPTED)  # who writes a script on the common trainers names none of them
    frameworks = set(case.frameworks)
    return bool(frameworks) and frameworks.isdisjoint(libraries) and frameworks.isdisjoint(context.named)


def _presupposed(case: Case, context: Context) -> float:
    """The share of the set-up in a cause's title (components, algorithms, models, cards) that is mentioned nowhere."""
    titles = context.case_titles.get(case.id, frozenset())
    setup = [concept for concept in titles if context.glossary[concept].kind in SETUP]
    said = context.intent.concepts.keys() | context.pasted_concepts
    return sum(concept not in said for concept in setup) / len(setup) if setup else 0.0


def _clash(fact: Recognised | None, known: Sequence[str]) -> bool:
    return fact is not None and bool(known) and fact.value not in known


def _share(written: frozenset[str], involved: Sequence[str]) -> float:
    return len(written.intersection(involved)) / len(involved) if involved else 0.0
