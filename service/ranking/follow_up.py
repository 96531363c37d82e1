"""What a follow-up changes: the evidence as it is after what was tried, and the difference to the answer before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from trainmedic.kb.engine.checker import check
from trainmedic.kb.engine.mechanism import origin_id
from trainmedic.kb.engine.patches import patched, reread, unstarted
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.evidence import Evidence, Read
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report import Finding, Report, Status
from trainmedic.service.dialogue.conversation import Message
from trainmedic.service.dialogue.difference import Difference, difference
from trainmedic.service.dialogue.intent import Relation
from trainmedic.service.dialogue.turn import Turn
from trainmedic.service.dialogue.what_if import with_changes
from trainmedic.service.ranking.features import Candidate, Context, findings_of, shown_by_log
from trainmedic.service.ranking.knowledge import Knowledge

COMPARED = (Relation.STILL_FAILING, Relation.CHANGED_EVIDENCE, Relation.PATCHED)
"""Messages whose answer begins with the difference to the previous one."""


def as_it_is_now(message: Message, knowledge: Knowledge, read: Read) -> Evidence:
    """The evidence with the changes that the user reports, among them the fixes of causes that were tried."""
    evidence, rules = message.evidence, knowledge.rules
    if message.made:
        evidence = with_changes(evidence, message.made, rules, read)
    if message.unstarted:
        evidence = unstarted(evidence)
    if message.tried:
        report = check(evidence, rules)
        findings = [
            finding
            for cause_id in message.tried
            if cause_id in knowledge.published
            for finding in findings_of(knowledge.published[cause_id], report)
            if finding in report.fired and not message.renewed(finding) and not shown_by_log(finding, evidence)
        ]
        edits = [edit for finding in findings for fix in finding.fixes[:1] for edit in fix.edits]
        if edits:
            evidence = reread(evidence, patched(edits, evidence.sources), read)
    return evidence


def changed(
    message: Message,
    context: Context,
    turns: Sequence[Turn],
    message_of: Callable[[str, Sequence[Attachment], Sequence[Turn]], Message],
    knowledge: Knowledge,
    read: Read,
) -> Difference | None:
    """What this message changed against the answer before it; None if there is nothing to compare."""
    if not turns or message.only_talks or not (message.relation in COMPARED or message.made):
        return None
    last = turns[-1]
    earlier = as_it_is_now(message_of(last.question, last.attachments, turns[:-1]), knowledge, read)
    found = difference(check(earlier, knowledge.rules), context.report)
    cleared = {cause_id for finding in found.cleared for cause_id in finding.cases}
    fixed = last.causes[:1] if message.relation is Relation.PATCHED and set(last.causes[:1]) & cleared else ()
    published = knowledge.published
    causes = [published[cause_id] for cause_id in (*message.tried, *fixed) if cause_id in published]
    kept = [case for case in causes if not any(message.renewed(f) for f in _fired(case, context.report))]
    return replace(found, ruled_out=tuple(kept), unstarted=message.unstarted)


def not_ruled_out(candidates: Sequence[Candidate], changes: Difference, knowledge: Knowledge) -> tuple[Candidate, ...]:
    """The candidates without the causes that are ruled out and the origins that stand for these alone."""
    ruled_out = {cause_id for case in changes.ruled_out for cause_id in _same_fix(case, knowledge)}
    return tuple(candidate for candidate in candidates if candidate.cause.id not in ruled_out)


def _same_fix(case: Case, knowledge: Knowledge) -> frozenset[str]:
    origins = (
        origin_id(mechanism, origin)
        for mechanism in knowledge.mechanisms.mechanisms
        for origin in mechanism.origins
        if origin.cases == (case.id,)
    )
    return frozenset((case.id, *origins, *(case.related if case.level == "origin" else ())))


def _fired(case: Case, report: Report) -> tuple[Finding, ...]:
    return tuple(finding for finding in findings_of(case, report) if finding.status is Status.FIRED)
