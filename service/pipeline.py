"""From a question to everything that its answer says: read, check, understand, retrieve, diagnose.

Nothing is composed and nothing is stored here; `service.answer.assemble` makes the answer of a draft.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from types import MappingProxyType
from typing import Literal

from trainmedic.kb.audit.audit import DefectMatch
from trainmedic.kb.comparison.run_diff import RunDiff, Side, diff_runs, side_of
from trainmedic.kb.effective.model import Effective
from trainmedic.kb.effective.table import effective
from trainmedic.kb.engine.checker import check
from trainmedic.kb.engine.facts import FactBook
from trainmedic.kb.engine.patches import with_patches
from trainmedic.kb.error_messages.explain import MessageMatch, explain
from trainmedic.kb.errors import SourceError
from trainmedic.kb.model.case import Case, Verdict
from trainmedic.kb.model.environment import SourceChange
from trainmedic.kb.model.evidence import Evidence, Read
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report import Report, Severity
from trainmedic.kb.sources.compared import on_the_path
from trainmedic.kb.sources.library import Library
from trainmedic.kb.sources.raised import Raised, raised_in
from trainmedic.kb.stopwatch import Stopwatch
from trainmedic.kb.threads.thread import SimilarThread
from trainmedic.service.dialogue.conversation import Message, message_of
from trainmedic.service.dialogue.difference import Difference
from trainmedic.service.dialogue.inquiry import Inquiry, inquiry_of
from trainmedic.service.dialogue.intent import Relation, understand
from trainmedic.service.dialogue.query import Query, build_query
from trainmedic.service.dialogue.request import Ask, safely_named
from trainmedic.service.dialogue.turn import Asked, Outcome, Turn
from trainmedic.service.dialogue.two_runs import of_failing_run, two_runs
from trainmedic.service.dialogue.what_if import WhatIf, what_if
from trainmedic.service.ranking.candidates import candidates_of, context_of, impossible_defects
from trainmedic.service.ranking.defects import defects_beside
from trainmedic.service.ranking.diagnose import Diagnosis, complaint, concluded, diagnose
from trainmedic.service.ranking.features import Candidate, Context, said_concepts
from trainmedic.service.ranking.follow_up import as_it_is_now, changed, confirmed, first_of, ruled_out, without
from trainmedic.service.ranking.inference import reweighed
from trainmedic.service.ranking.instructed import Instruction, instructed
from trainmedic.service.ranking.judgement import Judgement
from trainmedic.service.ranking.knowledge import Knowledge
from trainmedic.service.ranking.proposal import Proposal, proposal
from trainmedic.service.ranking.refused import Refusal, refused
from trainmedic.service.ranking.retrieve import Hit, retrieve
from trainmedic.service.ranking.similar import shown, similar_threads

OF_THE_ANSWER = (Relation.ACKNOWLEDGEMENT, Relation.SOLVED, Relation.ALTERNATIVE, Relation.PLACE)
"""Of messages that are about the answer before."""
CHANGED = 2
"""Functions of a traceback whose change since the release that worked is told."""
CANDIDATES = 40
"""Causes that retrieval hands to ranking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRuns:
    """The run that works, and how the failing one differs from it."""

    works: Side
    diff: RunDiff
    fails: tuple[str, ...]
    """The files of the failing run."""


ELECTIVE = ("answered", "need_input")
"""Verdicts under which the order of the causes matters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One question with everything that an answer to it says, whoever writes the text.

    ``supposed`` is what the rules say of a change that the question only supposes, or that helped; ``helped`` is
    the cause that this confirms. ``proposal`` is the fix of the first cause in the user's own files,
    ``instruction`` what an exception that no cause explains says to set or does not accept, ``changes`` the
    difference to the previous answer. ``printed`` are messages of frameworks in the evidence, ``raised`` the code
    that its tracebacks end in, ``changed_code`` what is new on their path, ``similar`` reports of others,
    ``defects`` those of the installed packages to show beside the causes, ``inquiry`` is a question that is no
    incident, ``effective`` what decides the run. ``recalled``: all stored turns could be read. ``judgement`` is a
    model's, which decides over the diagnosis of the program; ``elector`` is the name of a model that only weighed
    the program's causes.
    """

    id: str
    conversation_id: str
    trace_id: str = ""
    request: Ask
    knowledge: Knowledge
    message: Message
    context: Context
    diagnosis: Diagnosis
    language: Literal["en", "zh"]
    supposed: WhatIf | None = None
    helped: Case | None = None
    proposal: Proposal | None = None
    instruction: Instruction | Refusal | None = None
    changes: Difference | None = None
    printed: tuple[MessageMatch, ...] = ()
    raised: tuple[Raised, ...] = ()
    changed_code: tuple[SourceChange, ...] = ()
    similar: tuple[SimilarThread, ...] = ()
    defects: tuple[DefectMatch, ...] = ()
    runs: ComparedRuns | None = None
    inquiry: Inquiry | None = None
    effective: Effective | None = None
    recalled: bool = True
    embedded_percent: int = 0
    timings_ms: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    judgement: Judgement | None = None
    elector: str = ""

    @property
    def verdict(self) -> Verdict:
        return self.judgement.verdict if self.judgement is not None else self.diagnosis.verdict

    @property
    def earlier(self) -> tuple[Turn, ...]:
        """The earlier turns of the conversation that were read."""
        return self.message.turns

    @property
    def asked(self) -> Asked:
        """The stored part of the question."""
        names = {attachment.name for attachment in self.request.attachments}
        works = self.runs.works.evidence.sources if self.runs is not None else ()
        sources = {source.name: source for source in (*works, *self.context.evidence.sources)}
        return Asked(
            evidence=self.context.evidence,
            sources=tuple(source for name, source in sources.items() if name in names),
            index_id=self.knowledge.index.manifest.id,
            owner=self.request.owner,
            continues=any(turn.answer_id for turn in self.message.turns),
            outcome=self._outcome(),
        )

    def _outcome(self) -> Outcome | None:
        """What the message says that came of the answer before."""
        last = self.message.turns[-1] if self.message.turns else None
        relation = self.message.relation
        tried = relation is Relation.STILL_FAILING and bool(self.message.attempts)
        if last is None or not last.answer_id or not (tried or relation is Relation.SOLVED):
            return None
        return Outcome(answer_id=last.answer_id, helped=not tried, said=self.context.evidence.question)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The stages over one body of knowledge. ``read`` reads all that is sent, in this process or in another.

    ``source`` is that of the releases at hand."""

    knowledge: Knowledge
    read: Read
    source: Library | None = None

    def draft(self, request: Ask, turns: Sequence[Turn] = ()) -> Draft:
        watch = Stopwatch()
        turns = _of_incidents(turns)
        runs = two_runs(request.question, request.attachments)
        attachments = runs.fails if runs is not None else request.attachments
        message = self.message(request.question, attachments, turns)
        if message.turns and not turns[-1].verdict:
            turns = self._with_outcome(turns, request.top_k)
            message = self.message(request.question, attachments, turns)
        watch.lap("parse")
        applied = as_it_is_now(message, self.knowledge, self.read)
        candidates, context = self._look_up(message, applied.evidence, watch)
        if runs is not None:  # who compares a run with one that works says that it does not
            context = replace(context, intent=replace(context.intent, says_failed=True))
        changes = changed(message, context, turns, self.message, applied, self.knowledge, self.read)
        out = ruled_out(message, context.report, context.evidence, self.knowledge, self.read)
        candidates = without(candidates, (*out, *(changes.ruled_out if changes is not None else ())), self.knowledge)
        intent, rules = context.intent, self.knowledge.rules
        supposed, helped, instruction = None, None, None
        inquiry = self._inquiry(request, turns, message, context)
        printed = () if inquiry is not None else explain(context.evidence)
        if inquiry is not None:
            verdict: Verdict = "explained" if inquiry.resolved else "not_in_kb"
            diagnosis, changes = Diagnosis(verdict=verdict, causes=(), missing=()), None
            inquiry = replace(inquiry, near=tuple(each.cause.id for each in candidates))
        else:
            diagnosis = diagnose(candidates, context, self.knowledge.weights, request.top_k)
            if intent.changes:
                supposed = what_if(context.evidence, intent.changes, rules, self.read, facts=True)
            helped = confirmed(message, diagnosis, context.evidence, supposed)
            diagnosis = first_of(diagnosis, helped)
            instruction = self._instruction(diagnosis, message, context, printed)
            if instruction is not None:
                diagnosis = replace(diagnosis, verdict="answered", causes=(), missing=())
        quiet = inquiry is not None or diagnosis.verdict == "no_fault"
        compared = self._two_runs(runs.works, context) if runs is not None else None
        draft = Draft(
            id=uuid.uuid4().hex,
            conversation_id=request.conversation_id or uuid.uuid4().hex,
            request=request,
            knowledge=self.knowledge,
            message=message,
            context=context,
            diagnosis=diagnosis,
            language=intent.language if request.language == "auto" else request.language,
            supposed=supposed,
            helped=helped if message.relation is Relation.SOLVED else None,
            proposal=self._proposal(diagnosis, context, compared),
            instruction=instruction,
            changes=changes,
            printed=printed,
            raised=self._raised(context.evidence),
            changed_code=self._changed_code(context.evidence, compared),
            similar=() if quiet else shown(context.similar),
            defects=() if quiet else self._defects(context, diagnosis),
            runs=compared,
            inquiry=inquiry,
            effective=effective(context.evidence) if context.evidence.run.options else None,
        )
        watch.lap("compose")
        return replace(draft, timings_ms=watch.laps)

    def weighed_anew(self, draft: Draft, odds: Mapping[str, float], elector: str) -> Draft:
        """A draft whose first causes someone else weighed (id → factor)."""
        if draft.instruction is not None:
            return draft
        context, weights = draft.context, self.knowledge.weights
        differential = reweighed(draft.diagnosis.differential, odds, context, weights)
        diagnosis = concluded(differential, context, weights, draft.request.top_k)
        if diagnosis.verdict not in ELECTIVE:
            return draft
        return replace(
            draft,
            diagnosis=diagnosis,
            proposal=self._proposal(diagnosis, context, draft.runs),
            defects=self._defects(context, diagnosis),
            elector=elector,
        )

    def candidates(self, request: Ask) -> tuple[tuple[Candidate, ...], Context]:
        """Input of the ranking for one question: the candidates and what they share."""
        attachments = of_failing_run(request.question, request.attachments)
        message = self.message(request.question, attachments, ())
        return self._look_up(message, message.evidence, Stopwatch())

    def message(self, question: str, attachments: Sequence[Attachment], turns: Sequence[Turn]) -> Message:
        return message_of(question, attachments, turns, self.knowledge.glossary, self.read)

    def check(self, evidence: Evidence, book: FactBook | None = None) -> Report:
        rules = self.knowledge.rules
        return with_patches(check(evidence, rules, book), evidence, rules, self.read)

    def side(self, attachments: Sequence[Attachment]) -> Side:
        """One of two runs to compare."""
        evidence = self.read("", safely_named(attachments))
        return side_of(evidence, self.check(evidence), self.knowledge.audited.of(evidence.versions))

    def hits(self, query: Query, leave_out: Collection[str]) -> tuple[Hit, ...]:
        known = self.knowledge
        return retrieve(
            query, known.index, known.embedder, top_k=CANDIDATES, cases=known.published, leave_out=leave_out
        )

    def _look_up(self, message: Message, evidence: Evidence, watch: Stopwatch) -> tuple[tuple[Candidate, ...], Context]:
        known = self.knowledge
        intent = understand(
            message.question,
            evidence,
            known.glossary,
            language=message.language,
            relation=message.relation,
            changes=message.changes,
        )
        book = FactBook(evidence, said_concepts(intent))
        report = self.check(evidence, book)
        watch.lap("rules")
        query = build_query(evidence, report, intent.text, glossary=known.glossary)
        leave_out = impossible_defects(evidence, intent, known)
        hits = self.hits(query, leave_out)
        watch.lap("retrieve")
        foreign = intent.out_of_scope or intent.domain_score < known.weights.field
        similar = similar_threads(query, known.threads, known.embedder) if known.threads and not foreign else ()
        context = context_of(evidence, report, intent, hits, known, leave_out, similar, book)
        return candidates_of(hits, context, known), context

    def _inquiry(self, request: Ask, turns: Sequence[Turn], message: Message, context: Context) -> Inquiry | None:
        """What a message asks that is about no incident: it brings no failure of its own, and its files no fault."""
        if context.intent.out_of_scope or context.intent.changes or message.relation in OF_THE_ANSWER:
            return None
        files = {attachment.name for attachment in request.attachments}
        for finding in context.report.fired if files else ():
            at_fault = finding.severity is not Severity.INFO and finding.concludes == "fault"
            if at_fault and any(span.attachment in files for span in finding.evidence):
                return None
        own = self.read(request.question, request.attachments) if turns else message.evidence
        inquiry = inquiry_of(own, context.evidence, self.knowledge.glossary)
        if inquiry is None or inquiry.certain:
            return inquiry
        if turns and (not inquiry.resolved or message.relation is Relation.EXPLANATION):
            return None  # it is about the answer above
        return inquiry if context.intent.domain_score >= self.knowledge.weights.field else None

    def _with_outcome(self, turns: Sequence[Turn], top_k: int) -> tuple[Turn, ...]:
        """The turns, the last one with what it is answered; for callers that keep the conversation themselves."""
        *before, last = turns
        message = self.message(last.question, last.attachments, before)
        evidence = as_it_is_now(message, self.knowledge, self.read).evidence
        candidates, context = self._look_up(message, evidence, Stopwatch())
        diagnosis = diagnose(candidates, context, self.knowledge.weights, top_k)
        causes = tuple(cause.case.id for cause in diagnosis.causes)
        return (*before, replace(last, verdict=diagnosis.verdict, causes=causes))

    def _proposal(self, diagnosis: Diagnosis, context: Context, runs: ComparedRuns | None) -> Proposal | None:
        """The fix of the cause that is named, unless a rule of its own has a patch; beside a run that works, the
        setting that the cause is about as that run has it."""
        cause = diagnosis.lead or diagnosis.likely
        if cause is None or cause.case.kind != "fault":
            return None
        rules = self.knowledge.rules
        values = {each.name: each.good for each in runs.diff.differences if each.kind == "setting"} if runs else {}
        name = next((name for name in cause.case.settings if values.get(name)), "")
        effects = what_if(context.evidence, {name: values[name] or ""}, rules, self.read) if name else None
        if effects is not None and effects.patch and not effects.appears:
            return Proposal(case=cause.case.id, effects=effects)
        if any(fix.patch and fix.repairs for finding in diagnosis.own(cause) for fix in finding.fixes):
            return None
        return proposal(cause.case, context.evidence, rules, self.read)

    def _instruction(
        self, diagnosis: Diagnosis, message: Message, context: Context, printed: Sequence[MessageMatch]
    ) -> Instruction | Refusal | None:
        """What the exception says to set or does not accept, unless a cause explains it or it was tried."""
        first = diagnosis.lead
        unsure = first is None or (first.confidence == "low" and not first.features["rule_fired"])
        if diagnosis.verdict not in ELECTIVE or not unsure or message.relation is Relation.STILL_FAILING:
            return None
        evidence, rules = context.evidence, self.knowledge.rules
        return instructed(evidence, rules, self.read) or refused(evidence, printed, rules, self.read)

    def _defects(self, context: Context, diagnosis: Diagnosis) -> tuple[DefectMatch, ...]:
        evidence, symptoms = context.evidence, context.symptoms
        beliefs = [diagnosis.differential.belief(cause) for cause in diagnosis.causes]
        concerning = {
            belief.id
            for belief in beliefs
            if belief is not None
            and (belief is beliefs[0] or not symptoms or symptoms & set(belief.weighed.mechanism.predicts))
        }
        known = self.knowledge.defects.of(evidence.versions).all
        return defects_beside(evidence, known, concerning, complains=complaint(context))

    def _raised(self, evidence: Evidence) -> tuple[Raised, ...]:
        with suppress(SourceError):  # a file that was damaged or changed costs this, not the answer
            return raised_in(evidence, self.source) if self.source is not None else ()
        return ()

    def _changed_code(self, evidence: Evidence, runs: ComparedRuns | None) -> tuple[SourceChange, ...]:
        good = {**evidence.known_good, **(runs.works.evidence.versions if runs is not None else {})}
        if self.source is None or not good:
            return ()
        with suppress(SourceError):
            return tuple(islice(on_the_path(good, evidence, self.source), CHANGED))
        return ()

    def _two_runs(self, attachments: Sequence[Attachment], context: Context) -> ComparedRuns:
        evidence, works = context.evidence, self.side(attachments)
        fails = side_of(evidence, context.report, self.knowledge.audited.of(evidence.versions))
        return ComparedRuns(
            works=works,
            diff=diff_runs(works, fails, self.knowledge.mechanisms.mechanisms),
            fails=tuple(source.name for source in evidence.sources if source.name is not None),
        )


def _of_incidents(turns: Sequence[Turn]) -> Sequence[Turn]:
    """The turns without questions beside the incident, whose words say nothing of it; all if there are no others."""
    incidents = tuple(turn for turn in turns if turn.verdict != "explained" or turn.attachments)
    return incidents or turns
