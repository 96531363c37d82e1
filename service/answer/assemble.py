"""The one place where a draft becomes an answer, whoever ordered the causes or wrote the text. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainmedic.kb.model.report import Missing, Status
from trainmedic.kb.model.report_view import MissingView
from trainmedic.kb.projection import project
from trainmedic.service.answer import layout
from trainmedic.service.answer.audit import defect_view
from trainmedic.service.answer.citations import Citations, plain_text
from trainmedic.service.answer.diagnosed import hypothesis_view, judged
from trainmedic.service.answer.differential import differential_view
from trainmedic.service.answer.effective import decided
from trainmedic.service.answer.error_messages import message_view
from trainmedic.service.answer.follow_up import changes_view, differing
from trainmedic.service.answer.horizon import horizon_views, of_draft
from trainmedic.service.answer.messages import messages
from trainmedic.service.answer.option_names import in_dialect
from trainmedic.service.answer.refutations import refutations_of
from trainmedic.service.answer.run_diff import two_runs_view
from trainmedic.service.answer.schema import (
    Answer,
    CauseView,
    MechanismRef,
    RefutationView,
    StepView,
    markdown,
)
from trainmedic.service.answer.series import series_views
from trainmedic.service.answer.similar import similar_view
from trainmedic.service.answer.views import finding_view, receipt_view, run_view, settings_used, signal_view
from trainmedic.service.dialogue.intent import Relation
from trainmedic.service.pipeline import Draft
from trainmedic.service.ranking.diagnose import Diagnosis
from trainmedic.service.ranking.inference import Cause


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The result of asking a model, beside its judgement: why there is none, and what it looked up."""

    notices: tuple[str, ...] = ()
    steps: tuple[StepView, ...] = ()


def assemble(draft: Draft, asked: Asked | None = None) -> Answer:
    """The answer of a draft; without ``asked`` there is no model."""
    language, context, judgement = draft.language, draft.context, draft.judgement
    evidence, report = context.evidence, context.report
    asked = asked or Asked(notices=(messages("no_model", language),))
    citations = Citations(language)
    sections = layout.composed(draft, citations) if judgement is None else judged(draft, judgement, citations)
    text, horizon = markdown(sections), horizon_views(of_draft(draft), language)
    told = " ".join(section.body for section in sections if section.kind != "receipt")
    beyond = (view.message for view in horizon if view.message not in told)
    return Answer(
        id=draft.id,
        conversation_id=draft.conversation_id,
        verdict=draft.verdict,
        language=language,
        mode="deterministic" if judgement is None else "llm",
        model=judgement.model if judgement is not None else draft.elector or None,
        answer=text,
        sections=sections,
        causes=cause_views(draft, language),
        findings=tuple(finding_view(finding, language) for finding in report.findings),
        citations=citations.all(),
        differential=differential_view(draft.diagnosis, context, language),
        missing=tuple(project(MissingView, item, language) for item in _missing(draft)),
        signals=tuple(signal_view(signal, language) for signal in evidence.signals),
        series=series_views(evidence),
        run=run_view(evidence, settings_used(report)),
        receipt=receipt_view(evidence.receipt),
        kb_version=draft.knowledge.cases.version,
        ruleset_version=report.ruleset_version,
        notices=(*asked.notices, *notices_of(draft).values(), *beyond),
        usage=judgement.usage if judgement is not None else {},
        timings_ms=draft.timings_ms,
        trace_id=draft.trace_id,
        steps=asked.steps,
        changes=changes_view(differing(draft), language),
        defects=tuple(defect_view(match, language) for match in draft.defects),
        messages=tuple(message_view(match, language) for match in draft.printed),
        similar=tuple(map(similar_view, draft.similar)),
        words_only=draft.knowledge.index.words_only,
        comparison=two_runs_view(draft),
        horizon=horizon,
        effective=decided(draft.effective) if draft.effective is not None else None,
    )


def notices_of(draft: Draft) -> Mapping[str, str]:
    """The notices that a reader of a draft needs, whoever writes the text; by kind."""
    language, unread = draft.language, draft.message.unread
    notices = {}
    if unread:
        notices["unread_turns"] = messages("unread_turns", language, count=unread)
    if draft.knowledge.index.words_only:
        notices["words_only"] = messages("words_only", language, percent=draft.embedded_percent)
    if not draft.recalled:
        notices["not_stored"] = messages("not_stored", language)
    return notices


def _missing(draft: Draft) -> tuple[Missing, ...]:
    """Nothing is asked of a user who says thanks."""
    thanks = draft.message.relation in (Relation.ACKNOWLEDGEMENT, Relation.SOLVED)
    return () if thanks else draft.diagnosis.missing


def cause_views(draft: Draft, language: str) -> tuple[CauseView, ...]:
    """The model's hypotheses, then the program's own causes that are not among them."""
    own = draft.judgement.hypotheses if draft.judgement is not None else ()
    views = [hypothesis_view(hypothesis, rank, draft) for rank, hypothesis in enumerate(own, start=1)]
    elected = {hypothesis.cause.case.id for hypothesis in own if hypothesis.cause is not None}
    # A healthy run has no further causes, nor has a question that is not an incident.
    others = draft.diagnosis.causes if draft.judgement is None or draft.verdict in ("answered", "need_input") else ()
    left = [cause for cause in others if cause.case.id not in elected]
    most = max(len(views), draft.request.top_k)
    return (*views, *_known_causes(left, draft, language, len(views) + 1))[:most]


def _known_causes(causes: Sequence[Cause], draft: Draft, language: str, first_rank: int) -> tuple[CauseView, ...]:
    diagnosis, evidence = draft.diagnosis, draft.context.evidence
    return tuple(
        CauseView(
            rank=rank,
            case_id=cause.case.id,
            title=cause.case.title.get(language),
            cause=plain_text(cause.case.section("cause", language)),
            fix=plain_text(in_dialect(fix_of(cause, diagnosis, language), cause.case, evidence, language)),
            confidence=cause.confidence,
            score=round(cause.probability, 4),
            evidence_grade=cause.case.evidence,
            cases=(cause.case.id, *cause.case.related),
            findings=tuple(sorted({f.rule_id for f in cause.findings if f.status is Status.FIRED})),
            refutations=tuple(
                project(RefutationView, item, language) for item in refutations_of(cause.case, diagnosis.findings)
            ),
            why=tuple(name for name, value in cause.features.items() if value > 0),
            level=cause.case.level,
            mechanism=_mechanism_of(cause, diagnosis, language),
        )
        for rank, cause in enumerate(causes, start=first_rank)
    )


def fix_of(cause: Cause, diagnosis: Diagnosis, language: str) -> str:
    """The change; for a mechanism what each origin that is left asks for, the likeliest first."""
    belief = diagnosis.differential.belief(cause) if cause.case.level == "mechanism" else None
    if belief is None:
        return cause.case.section("fix", language)
    colon = "：" if language == "zh" else ": "
    origins = [state.origin for state in belief.origins()]
    return "\n".join(f"- {origin.title.get(language)}{colon}{origin.fix.get(language)}" for origin in origins)


def _mechanism_of(cause: Cause, diagnosis: Diagnosis, language: str) -> MechanismRef | None:
    belief = diagnosis.differential.belief(cause)
    if belief is None:
        return None
    return MechanismRef(id=belief.id, title=belief.weighed.mechanism.title.get(language))
