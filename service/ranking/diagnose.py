"""Report and candidates to a verdict: which causes, how sure, and what to ask. Deterministic; no model, no I/O.

A verdict is a label. It decides how the answer begins; the causes of a real complaint are shown under any of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from trainmedic.kb.engine.mechanism import Origin
from trainmedic.kb.model.case import Verdict
from trainmedic.kb.model.evidence import Evidence, InputReceipt
from trainmedic.kb.model.report import Finding, Missing, Severity, Status
from trainmedic.kb.parse.logs.signal_kinds import NON_FINITE
from trainmedic.service.ranking.features import LOGS, ODD_BUT_HARMLESS, Candidate, Context, finding_weight, shown_by_log
from trainmedic.service.ranking.inference import ASK, CLASHES, Cause, Differential, MechanismBelief, contradicted, infer
from trainmedic.service.ranking.questions import next_questions
from trainmedic.service.ranking.weights import Weights

BROKEN = frozenset({"loss_nan", "loss_inf", "nll_loss_nan"})
"""Signals that no artefact of logging explains unless its page says so."""
FOCUSED = 0.4
"""The least overlap of the question's own concepts with a case's, for a question that names no symptom."""
TOLERATED = frozenset(
    {"rows_thinned", "other_runs", "typographic", "missing_backslash", "no_blank_before_backslash", "truncated"}
)
"""Problems of reading that lose nothing a rule would have looked at."""
TROUBLED = 0.4
"""The least probability of a first cause for which a paste without any failure is not called healthy, nor a question
in few words of our field one of another."""
LOGGED_ROWS = 8
CERTAIN = 0.55
"""The least weight (`finding_weight`) of a fired finding that decides by itself."""
LIKELY = 0.3
"""The least probability of a first cause that is already named while asking back."""
TELLING = 60
"""Width from which a question tells of something and does not just hand over a configuration."""
CONCERNS = frozenset({"symptom", "error"})
"""Kinds of concepts that say what is wrong."""
LEAST = 3
"""Causes that a complaint is answered with unless the first is certain."""


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
    differential: Differential = field(default_factory=Differential)

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
        """The first cause of an answer that asks back, if it is clearly ahead of the second and explains more than a
        display; else None."""
        if self.verdict != "need_input" or not self.causes:
            return None
        first, *rest = self.causes
        second = rest[0].probability if rest else 0.0
        # A high probability with low confidence means that the pasted text contradicts the case.
        ahead = first.confidence != "low" and first.probability >= max(LIKELY, 2 * second)
        return first if ahead and not first.case.secondary else None

    @property
    def mechanism(self) -> MechanismBelief | None:
        """The mechanism of the answer, if it is certain and its first cause not yet."""
        lead = self.lead
        if lead is None or lead.confidence != "low" or self.verdict != "answered":
            return None
        belief = self.differential.belief(lead)
        return belief if belief is not None and belief.probability >= max(LIKELY, 1.5 * lead.probability) else None

    def own(self, cause: Cause | None) -> tuple[Finding, ...]:
        """The fired findings of what the answer is about: of a cause and its origin, or of the mechanism."""
        whole = self.mechanism
        origins: tuple[Origin, ...] = ()
        cases: set[str] = set()
        if whole is not None:
            origins, cases = whole.weighed.mechanism.origins, set(whole.weighed.mechanism.all_cases)
        elif cause is not None:
            belief = self.differential.belief(cause)
            state = belief.state(cause) if belief is not None else None
            origins = (state.origin,) if state is not None else ()
            cases = {each.case.id for each in (cause, *cause.members)}
        rules = {rule for origin in origins for rule in origin.rules}
        found = cause.findings if cause is not None else ()
        return tuple(f for f in self.findings if f in found or f.rule_id in rules or not cases.isdisjoint(f.cases))


def diagnose(candidates: Sequence[Candidate], context: Context, weights: Weights, top_k: int = 5) -> Diagnosis:
    """Rank the candidates and decide what the answer is.

    A finding that fired decides over retrieval; a finding unrelated to the symptoms asked about does not make
    the verdict (it is listed all the same).
    """
    return concluded(infer(candidates, context, weights), context, weights, top_k)


def concluded(differential: Differential, context: Context, weights: Weights, top_k: int = 5) -> Diagnosis:
    """The verdict and its causes, given how likely each cause is."""
    left = [cause for cause in differential.causes if not _refuted(cause)]
    if left and left[0].confidence == "low":
        # What a check reads in log or code about this complaint comes before what only resembles it.
        left.sort(key=lambda cause: not _is_shown(cause, context))
    possible = replace(differential, causes=tuple(left))
    verdict = _verdict(possible, context, weights)
    causes = _shown(verdict, possible, context, weights)[:top_k]
    settled = verdict == "answered" and causes[0].features["rule_fired"] >= CERTAIN and causes[0].confidence == "high"
    silent = settled or verdict == "no_fault" or (verdict == "not_in_kb" and not causes)
    fired = context.report.fired
    return Diagnosis(
        verdict=verdict,
        causes=causes,
        missing=() if silent else next_questions(possible, context),
        findings=tuple(sorted(fired, key=lambda finding: _telling(finding, context))),
        related=tuple(finding for finding in fired if relevant(finding, context)),
        differential=differential,
    )


def _refuted(cause: Cause) -> bool:
    """Whether the evidence says that the release or the condition of a cause is another one, and no check says that it
    is this one: it stays in the differential, with the reason, and is nothing that an answer offers."""
    values = cause.features
    return not (values["rule_fired"] or values["message"]) and bool(values["version_outside"] or values["fails"])


def _shown(verdict: Verdict, differential: Differential, context: Context, weights: Weights) -> tuple[Cause, ...]:
    """The causes that an answer shows: all that are plausible; at least the first three of a complaint that are not
    about another run than this one."""
    plausible = tuple(
        cause
        for cause in differential.causes
        if cause.probability >= (ASK if cause.features["algorithm_clash"] else weights.plausible)
        or _is_shown(cause, context)
    )
    if verdict == "no_fault":
        return tuple(cause for cause in plausible if cause.case.kind == "artefact")
    if verdict == "not_in_kb" and (context.intent.out_of_scope or not complaint(context)):
        return ()
    if context.intent.vague and nothing_readable(context.evidence):
        return ()
    settled = verdict == "answered" and bool(plausible) and plausible[0].confidence == "high"
    if settled or len(plausible) >= LEAST or not complaint(context):
        return plausible
    fitting = (c for c in differential.causes if c in plausible or not any(c.features[name] for name in CLASHES))
    return tuple(fitting)[:LEAST] or differential.causes[:1]


def complaint(context: Context) -> bool:
    """Whether something is said or shown to fail."""
    evidence = context.evidence
    return bool(evidence.tracebacks or context.observed or context.symptoms or context.intent.says_failed)


def unread_log(evidence: Evidence) -> InputReceipt | None:
    """The first log of which only a part was read."""
    return next((item for item in evidence.receipt.inputs if item.truncated and item.kind in LOGS), None)


def nothing_readable(evidence: Evidence) -> bool:
    """Whether files came and none of them could be read or held anything."""
    files = [item for item in evidence.receipt.inputs if item.name is not None]
    return bool(files) and not any(item.read and item.bytes for item in files)


def _telling(finding: Finding, context: Context) -> tuple[bool, int, float, str]:
    """Sort key: findings about the question first; of either kind the worst first."""
    severity = list(Severity).index(finding.severity)
    return not relevant(finding, context), severity, -finding_weight(finding, context), finding.rule_id


def _verdict(differential: Differential, context: Context, weights: Weights) -> Verdict:
    intent = context.intent
    first = differential.causes[0] if differential.causes else None
    if intent.domain_score < weights.field and (first is None or first.probability < TROUBLED):
        return "need_input" if nothing_readable(context.evidence) else "not_in_kb"
    if intent.out_of_scope and not _failed(first, context):
        # Bad answers may be the training's doing; nothing says so, and nothing says that there was any.
        worth_asking = intent.bad_output and first is not None and first.probability >= ASK
        return "need_input" if worth_asking else "not_in_kb"
    if first is None:
        return "no_fault" if _healthy(context) else "need_input" if intent.vague or complaint(context) else "not_in_kb"
    called_for = _called_for(first, context)
    artefact = first.case.kind == "artefact" and _convincing(first, context, weights.artefact)
    if called_for and artefact and context.observed & BROKEN <= set(first.case.signals):
        return "no_fault"
    if _healthy(context) and not _troubled(first, context):
        return "no_fault"
    likely = answerable(context) and likelihood(differential, first) >= weights.answer
    if called_for and first.case.kind == "fault" and (likely or _proven(first, context)) and not _known(first, context):
        return "answered"
    if first.probability >= weights.plausible or intent.vague or complaint(context):
        return "need_input"
    return "not_in_kb"


def _known(first: Cause, context: Context) -> bool:
    """Whether a cause only explains a display of which the user says already what it stands for."""
    said = {signal.kind for signal in context.evidence.signals if signal.stated}
    return first.case.secondary and not said.isdisjoint(NON_FINITE & set(first.case.signals))


def answerable(context: Context) -> bool:
    """Whether the question can be answered by likeness at all: it complains about something, and says what.

    A request, a question whether something is normal, and a few words that fit every cause of a symptom cannot.
    """
    intent, evidence = context.intent, context.evidence
    failed = bool(evidence.tracebacks or context.observed)  # a pasted failure says what the few words do not
    if intent.bare or intent.requests or intent.asks_if_normal or (intent.vague and not failed):
        return False
    pasted = evidence.run.options or evidence.rows or evidence.tracebacks
    return bool(complaint(context) or pasted or CONCERNS & set(intent.concepts.values()))


def likelihood(differential: Differential, first: Cause) -> float:
    """The probability of the first cause, or of what is going on in it if the evidence does not speak against that."""
    if contradicted(first.features):
        return 0.0
    belief = differential.belief(first)
    if belief is None or belief.weighed.contradiction > belief.weighed.support:
        return first.probability
    return max(first.probability, belief.probability)


def _failed(first: Cause | None, context: Context) -> bool:
    """Whether a pasted failure is likely enough that of a case, though no training is spoken of."""
    pasted = bool(context.evidence.tracebacks or context.observed)
    return pasted and first is not None and first.probability >= TROUBLED


def _convincing(cause: Cause, context: Context, least: float) -> bool:
    """Likely enough, or proven by a rule."""
    return (cause.probability >= least and not contradicted(cause.features)) or _proven(cause, context)


def _proven(cause: Cause, context: Context) -> bool:
    """Whether an error or warning of the cause's own rules fired on what was asked about."""
    likely = cause.probability >= ASK and any(_decides(finding, context) for finding in cause.findings)
    return likely or _is_shown(cause, context)


def _is_shown(cause: Cause, context: Context) -> bool:
    """Whether an error or warning of the cause's own rules is what the log or the user's code says, and about what was
    asked."""
    found = (finding for finding in cause.findings if finding.concludes == "fault")
    in_code = cause.case.family == "code"
    return any(_decides(f, context) and (in_code or shown_by_log(f, context.evidence)) for f in found)


def _decides(finding: Finding, context: Context) -> bool:
    fired = finding.status is Status.FIRED and finding.severity is not Severity.INFO
    return fired and finding_weight(finding, context) >= CERTAIN


def _called_for(cause: Cause, context: Context) -> bool:
    """Likeness of the pasted facts alone must not blame a run that no one complains about.

    Then the question itself must speak of what the case is about, or a rule must have fired.
    """
    if context.intent.complains or cause.features["focus"] >= FOCUSED:
        return True
    return any(f.status is Status.FIRED and relevant(f, context) for f in cause.findings)


def _healthy(context: Context) -> bool:
    """Something was there to look at, nothing in it is failing, and nothing is said to fail.

    What is only said to fail does not count if the question merely asks whether a log without trouble is normal.
    """
    evidence, intent = context.evidence, context.intent
    if unread_log(evidence) is not None:
        return False
    if any(problem.code not in TOLERATED for problem in evidence.receipt.problems):
        return False  # what could not be read cannot be called healthy
    reassured = context.healthy_log and intent.asks_if_normal
    if intent.says_failed and not reassured:
        return False
    # A few numbers may be someone's words; many with their steps are a log, whoever wrote its loop.
    own = sum(row.step is not None and row.span.attachment is not None for row in evidence.rows)
    logged = any(row.style != "user" for row in evidence.rows) or own >= LOGGED_ROWS
    if not (logged or evidence.run.options) or evidence.tracebacks:
        return False
    if not logged and (evidence.run.partial or (intent.width >= TELLING and not intent.asks_if_normal)):
        return False  # a configuration proves nothing about what is told of its run
    # Within the warm-up the learning rate is next to nothing: a loss that does not move yet is as it must be.
    excused = ODD_BUT_HARMLESS | ({"loss_flat"} if evidence.has("lr_in_warmup") else frozenset())
    if context.observed - excused:
        return False
    if (context.symptoms - excused or "symptom" in intent.concepts.values()) and not reassured:
        return False
    # Beside what is told of a run, even a hint at a symptom is reason to doubt.
    told = intent.width >= TELLING and not intent.asks_if_normal
    faults = (f for f in context.report.fired if f.concludes == "fault")
    return not any(f.severity is not Severity.INFO or (told and f.symptoms) for f in faults)


def _troubled(first: Cause | None, context: Context) -> bool:
    """Whether a fault is likely although nothing pasted is failing: much that goes wrong shows in no number."""
    if first is None or first.case.kind == "artefact" or context.intent.asks_if_normal:
        return False
    # A log without trouble says more for the run than a configuration in which nothing is found.
    return first.probability >= (TROUBLED if context.healthy_log else ASK)


def relevant(finding: Finding, context: Context) -> bool:
    """Whether a fired finding is about the symptoms asked about."""
    return finding_weight(finding, context) >= CERTAIN * 0.5
