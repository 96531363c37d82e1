"""The whole answer without a model: every sentence from a case, a rule or the input. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.report import Status
from trainmedic.kb.model.report_view import MissingView
from trainmedic.kb.projection import project
from trainmedic.service.answer.citations import Citations, plain_text
from trainmedic.service.answer.differential import differential_view
from trainmedic.service.answer.follow_up import changes_view, short_reply
from trainmedic.service.answer.layout import compose
from trainmedic.service.answer.messages import messages
from trainmedic.service.answer.schema import Answer, CauseView, Language, MechanismRef, RefutationView, markdown
from trainmedic.service.answer.series import series_views
from trainmedic.service.answer.views import (
    finding_view,
    receipt_view,
    run_view,
    settings_used,
    signal_view,
)
from trainmedic.service.dialogue.conversation import Message
from trainmedic.service.dialogue.difference import Difference
from trainmedic.service.dialogue.intent import Relation
from trainmedic.service.dialogue.turn import Turn
from trainmedic.service.dialogue.what_if import WhatIf
from trainmedic.service.ranking.diagnose import Diagnosis
from trainmedic.service.ranking.features import Context
from trainmedic.service.ranking.inference import Cause


def template_answer(
    message: Message,
    context: Context,
    diagnosis: Diagnosis,
    supposed: WhatIf | None,
    language: Language,
    kb_version: str,
    *,
    changes: Difference | None = None,
) -> Answer:
    """The answer in ``language``; the caller fills in ids and timings."""
    evidence, report = context.evidence, context.report
    reply = short_reply(message, diagnosis, context.intent, (cited := Citations(language)).case, language)
    if reply:
        sections, citations = reply, cited.all()
    else:
        repeated = changes is None and repeats(message.turns, diagnosis, evidence)
        sections, citations = compose(diagnosis, context, language, supposed, same=repeated, changes=changes)
    if message.relation in (Relation.ACKNOWLEDGEMENT, Relation.SOLVED):
        diagnosis = replace(diagnosis, missing=())
    unread = (messages("unread_turns", language, count=message.unread),) if message.unread else ()
    return Answer(
        id="",
        conversation_id="",
        verdict=diagnosis.verdict,
        language=language,
        mode="deterministic",
        model=None,
        answer=markdown(sections),
        sections=sections,
        causes=cause_views(diagnosis, language),
        findings=tuple(finding_view(finding, language) for finding in report.findings),
        citations=citations,
        differential=differential_view(diagnosis, context, language),
        missing=tuple(project(MissingView, item, language) for item in diagnosis.missing),
        signals=tuple(signal_view(signal, language) for signal in evidence.signals),
        series=series_views(evidence),
        run=run_view(evidence, settings_used(report)),
        receipt=receipt_view(evidence.receipt),
        kb_version=kb_version,
        ruleset_version=report.ruleset_version,
        notices=(messages("no_model", language), *unread),
        changes=changes_view(changes, language),
    )


def repeats(turns: Sequence[Turn], diagnosis: Diagnosis, evidence: Evidence) -> bool:
    """Whether the previous answer had the same verdict and first cause, and this message adds no new evidence."""
    spans = [option.span for option in evidence.run.options]
    spans += [row.span for row in evidence.rows]
    spans += [trace.span for trace in evidence.tracebacks]
    if not turns or not diagnosis.causes or any(span.attachment is None for span in spans):
        return False
    previous = turns[-1]
    return previous.verdict == diagnosis.verdict and previous.causes[:1] == (diagnosis.causes[0].case.id,)


def fix_of(cause: Cause, diagnosis: Diagnosis, language: str) -> str:
    """What to change; for a mechanism what each origin that is left asks for, the likeliest first."""
    belief = diagnosis.differential.belief(cause) if cause.case.level == "mechanism" else None
    if belief is None:
        return cause.case.section("fix", language)
    colon = "：" if language == "zh" else ": "
    origins = [state.origin for state in belief.origins()]
    return "\n".join(f"- {origin.title.get(language)}{colon}{origin.fix.get(language)}" for origin in origins)


def cause_views(diagnosis: Diagnosis, language: str) -> tuple[CauseView, ...]:
    return tuple(
        CauseView(
            rank=rank,
            case_id=cause.case.id,
            title=cause.case.title.get(language),
            cause=plain_text(cause.case.section("cause", language)),
            fix=plain_text(fix_of(cause, diagnosis, language)),
            confidence=cause.confidence,
            score=round(cause.probability, 4),
            evidence_grade=cause.case.evidence,
            cases=(cause.case.id, *cause.case.related),
            findings=tuple(sorted({f.rule_id for f in cause.findings if f.status is Status.FIRED})),
            refutations=tuple(project(RefutationView, item, language) for item in cause.case.refutations),
            why=tuple(name for name, value in cause.features.items() if value > 0),
            level=cause.case.level,
            mechanism=_mechanism_of(cause, diagnosis, language),
        )
        for rank, cause in enumerate(diagnosis.causes, start=1)
    )


def _mechanism_of(cause: Cause, diagnosis: Diagnosis, language: str) -> MechanismRef | None:
    belief = diagnosis.differential.belief(cause)
    if belief is None:
        return None
    return MechanismRef(id=belief.id, title=belief.weighed.mechanism.title.get(language))
