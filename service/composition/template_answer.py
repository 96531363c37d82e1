"""The whole answer without a model: every sentence from a case, a rule or the input. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trainmedic.kb.model.evidence import Evidence
from trainmedic.service.answer import Answer, Language, markdown
from trainmedic.service.composition.cause_views import cause_views
from trainmedic.service.composition.citations import Citations
from trainmedic.service.composition.compose import compose
from trainmedic.service.composition.differential import differential_view
from trainmedic.service.composition.follow_up import changes_view, short_reply
from trainmedic.service.composition.messages import messages
from trainmedic.service.composition.series import series_views
from trainmedic.service.composition.views import (
    finding_view,
    missing_view,
    receipt_view,
    run_view,
    settings_used,
    signal_views,
)
from trainmedic.service.dialogue.conversation import Message
from trainmedic.service.dialogue.difference import Difference
from trainmedic.service.dialogue.intent import Relation
from trainmedic.service.dialogue.turn import Turn
from trainmedic.service.dialogue.what_if import WhatIf
from trainmedic.service.ranking.diagnose import Diagnosis
from trainmedic.service.ranking.features import Context


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
        missing=tuple(missing_view(item, language) for item in diagnosis.missing),
        signals=signal_views(evidence, language),
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
