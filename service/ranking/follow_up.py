"""Effects of a follow-up: the evidence after the remedies tried, and the changes since the previous answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from trainmedic.kb.engine.checker import check
from trainmedic.kb.engine.mechanism import origin_id
from trainmedic.kb.engine.patches import patched, reread, unstarted
from trainmedic.kb.frameworks.settings import specs
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.evidence import Evidence, Read
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report import Finding, Report, Status
from trainmedic.kb.parse.logs.signal_kinds import BENIGN
from trainmedic.service.dialogue.change import setting_called
from trainmedic.service.dialogue.conversation import LOGGED, Message
from trainmedic.service.dialogue.difference import Difference, Failures, difference
from trainmedic.service.dialogue.intent import Relation
from trainmedic.service.dialogue.statements import IT
from trainmedic.service.dialogue.turn import Turn
from trainmedic.service.dialogue.what_if import Applied, WhatIf, with_statements
from trainmedic.service.ranking.diagnose import Diagnosis
from trainmedic.service.ranking.features import ODD_BUT_HARMLESS, Candidate, Context, findings_of, shown_by_log
from trainmedic.service.ranking.fix_values import fix_values
from trainmedic.service.ranking.knowledge import Knowledge

COMPARED = (Relation.STILL_FAILING, Relation.CHANGED_EVIDENCE, Relation.PATCHED)
"""Messages whose answer begins with the difference to the previous one."""


def as_it_is_now(message: Message, knowledge: Knowledge, read: Read) -> Applied:
    """The evidence with what the user says of the run, and with the fixes of causes that were tried."""
    message = _resolved(message, knowledge)
    applied = with_statements(message.evidence, message.made, knowledge.rules, read)
    evidence = unstarted(applied.evidence) if message.unstarted else applied.evidence
    report = check(evidence, knowledge.rules) if message.attempts else None
    if report is not None:
        findings = [
            finding
            for case in _ruled_out(message, evidence, knowledge)
            for finding in findings_of(case, report)
            if finding in report.fired and not message.renewed(finding) and not shown_by_log(finding, evidence)
        ]
        edits = [edit for finding in findings for fix in finding.fixes[:1] for edit in fix.edits]
        if edits:
            evidence = reread(evidence, patched(edits, evidence.sources), read)
            evidence = with_statements(evidence, message.made, knowledge.rules, read).evidence
    return replace(applied, evidence=evidence)


def _resolved(message: Message, knowledge: Knowledge) -> Message:
    """The message with the setting in place of "it": the number that the first cause of the answer before is about."""
    if IT not in message.made:
        return message
    made, run = dict(message.made), message.evidence.run
    said = made.pop(IT)
    case = knowledge.published.get(next(iter(said.about), ""))
    names = (*case.settings, *(setting_called(name, run) for name, _ in fix_values(case))) if case is not None else ()
    numbers = (name for name in names if name in specs() and specs()[name].kind in ("int", "number"))
    if (name := next(numbers, None)) is not None:
        made[name] = said
    return replace(message, made=made)


def _refuted(message: Message, report: Report, knowledge: Knowledge, read: Read) -> tuple[Case, ...]:
    """The causes that a rule found and no longer finds, because the run is not as it was pasted."""
    said = {name: statement for name, statement in message.made.items() if not statement.done}
    if not said:
        return ()
    if len(said) < len(message.made):  # what was changed since says nothing of the run that failed
        report = check(with_statements(message.evidence, said, knowledge.rules, read).evidence, knowledge.rules)
    fired = {case for finding in report.fired for case in finding.cases}
    rules = {finding.rule_id for finding in report.fired}
    found = [finding for finding in check(message.evidence, knowledge.rules).fired if finding.rule_id not in rules]
    cleared = dict.fromkeys(case for finding in found for case in finding.cases if case not in fired)
    return tuple(knowledge.published[case] for case in cleared if case in knowledge.published)


def ruled_out(
    message: Message, report: Report, evidence: Evidence, knowledge: Knowledge, read: Read
) -> tuple[Case, ...]:
    """The causes that cannot be, by what was tried and by what was said of the run."""
    tried = _ruled_out(message, evidence, knowledge)
    kept = [case for case in tried if not any(message.renewed(finding) for finding in _fired(case, report))]
    return tuple({case.id: case for case in (*kept, *_refuted(message, report, knowledge, read))}.values())


def _ruled_out(message: Message, evidence: Evidence, knowledge: Knowledge) -> tuple[Case, ...]:
    """The causes whose fix did not help: of the answer before the first one, or those that concern what was named."""
    ruled_out: dict[str, Case] = {}
    for attempt in message.attempts:
        cases = [knowledge.published[id] for id in attempt.causes if id in knowledge.published]
        names = {setting_called(name, evidence.run) for name in attempt.names}
        first, others = cases[:1], cases[1:]
        if names and first and names.isdisjoint((*first[0].settings, *_fixed_by(first[0], evidence))):
            first = [case for case in others if not names.isdisjoint(_fixed_by(case, evidence))]
        ruled_out |= {case.id: case for case in first}
    return tuple(ruled_out.values())


def _fixed_by(case: Case, evidence: Evidence) -> frozenset[str]:
    """The settings and packages that a case's fix changes."""
    return frozenset((*case.affected, *(setting_called(name, evidence.run) for name, _ in fix_values(case))))


def changed(
    message: Message,
    context: Context,
    turns: Sequence[Turn],
    message_of: Callable[[str, Sequence[Attachment], Sequence[Turn]], Message],
    now: Applied,
    knowledge: Knowledge,
    read: Read,
) -> Difference | None:
    """The changes of this message against the answer before it; None if there is nothing to compare."""
    corrected = (
        message.says or message.corrects or (message.relation is Relation.NEW_SYMPTOM and message.own_files != {None})
    )
    if not turns or message.only_talks or not (message.relation in COMPARED or corrected):
        return None
    last = turns[-1]
    before = message_of(last.question, last.attachments, turns[:-1])
    earlier = as_it_is_now(before, knowledge, read).evidence
    found = difference(check(earlier, knowledge.rules), context.report)
    cleared = {cause_id for finding in found.cleared for cause_id in finding.cases}
    published = knowledge.published
    fixed = last.causes[:1] if message.relation is Relation.PATCHED and set(last.causes[:1]) & cleared else ()
    out = ruled_out(message, context.report, now.evidence, knowledge, read)
    tried = {id for attempt in message.attempts for id in attempt.causes}
    failing = message.relation is Relation.STILL_FAILING
    kept = [case for case in out if case.id in tried and failing]
    kept += [published[id] for id in fixed if id in published]
    wordings = {*message.says, *(change.wording for change in now.changed if IT in message.says)}
    said = {change.name for change in now.changed if change.wording in wordings}
    named = message.attempts[-1].names if failing and message.attempts else ()
    return replace(
        found,
        facts=tuple(change for change in now.changed if change.wording in wordings),
        unknown=() if failing else tuple(change for change in now.unknown if change.name in wordings),
        ruled_out=tuple(kept),
        refuted=tuple(case for case in out if case.id in last.causes and case not in kept and message.says),
        attempts=() if said else tuple(sorted({setting_called(name, now.evidence.run) for name in named})),
        shown=_failures(message, earlier, read),
        unstarted=message.unstarted,
    )


def _failures(message: Message, earlier: Evidence, read: Read) -> Failures | None:
    """What the message's own files show to fail; None if none of them is of a run."""
    own = [source for source in message.evidence.sources if source.name in message.own_files and source.name]
    if not own:
        return None
    now = read("", [Attachment(name=source.name or "", content=source.text) for source in own])
    if not any(region.kind in LOGGED for region in now.regions):
        return None
    return Failures(before=_failing(earlier), now=_failing(now), files=tuple(source.name or "" for source in own))


def _failing(evidence: Evidence) -> tuple[str, ...]:
    kinds = [signal.kind for signal in evidence.signals if signal.kind not in BENIGN | ODD_BUT_HARMLESS]
    exceptions = [trace.exception.rpartition(".")[2] for trace in evidence.tracebacks if trace.root]
    return tuple(dict.fromkeys((*kinds, *exceptions)))


def confirmed(message: Message, diagnosis: Diagnosis, evidence: Evidence, supposed: WhatIf | None) -> Case | None:
    """The cause whose fix helped: by this message or an earlier one. Of a change that is named, what it concerns."""
    causes = [cause.case for cause in diagnosis.causes]
    if message.relation is not Relation.SOLVED:
        return next((c.case for c in diagnosis.differential.causes if c.case.id == message.fixed), None)
    if diagnosis.verdict not in ("answered", "need_input"):
        return None
    if supposed is None or not supposed.changed:
        return next(iter(causes), None)
    likely = diagnosis.differential.causes
    cleared = {effect.rule_id for effect in supposed.clears}
    names = {change.name for change in supposed.changed}
    for cause in likely:
        if cleared & {finding.rule_id for finding in cause.findings if finding.status is Status.FIRED}:
            return cause.case
    return next(
        (c.case for c in likely if not names.isdisjoint((*c.case.settings, *_fixed_by(c.case, evidence)))), None
    )


def first_of(diagnosis: Diagnosis, case: Case | None) -> Diagnosis:
    """The diagnosis with a confirmed cause first."""
    if case is None:
        return diagnosis
    first = [cause for cause in diagnosis.differential.causes if cause.case.id == case.id]
    others = [cause for cause in diagnosis.causes if cause.case.id != case.id]
    return replace(diagnosis, causes=(*first, *others))


def without(candidates: Sequence[Candidate], cases: Sequence[Case], knowledge: Knowledge) -> tuple[Candidate, ...]:
    """The candidates without the causes that are ruled out and the origins that stand for these alone."""
    out = {cause_id for case in cases for cause_id in _same_fix(case, knowledge)}
    return tuple(candidate for candidate in candidates if candidate.cause.id not in out)


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
