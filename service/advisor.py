"""The answering pipeline: read, check the rules, understand, retrieve, rank, compose. Every channel calls it."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace

from trainmedic.kb.comparison.run_diff import Side
from trainmedic.kb.engine.checker import check
from trainmedic.kb.engine.facts import FactBook
from trainmedic.kb.engine.mechanism import origin_id
from trainmedic.kb.engine.patches import patched, reread, unstarted, with_patches
from trainmedic.kb.error_messages.explain import MessageMatch, explain
from trainmedic.kb.errors import StoreError
from trainmedic.kb.identities import identities_of, mask_identities
from trainmedic.kb.mask import mask
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.evidence import Evidence, Read
from trainmedic.kb.model.place import Attachment, Source
from trainmedic.kb.model.report import Finding, Report, Status
from trainmedic.kb.model.report_view import ReportView
from trainmedic.kb.stopwatch import Stopwatch
from trainmedic.kb.threads.thread import SimilarThread
from trainmedic.service.answer import Answer, AuditView, DefectView, MessagesView
from trainmedic.service.composition.audit import audited, defects_beside
from trainmedic.service.composition.diff_views import DiffView
from trainmedic.service.composition.error_messages import explained, with_messages
from trainmedic.service.composition.messages import messages
from trainmedic.service.composition.run_diff import diff_view, side_of, two_runs_view, with_comparison
from trainmedic.service.composition.similar import with_similar
from trainmedic.service.composition.template_answer import template_answer
from trainmedic.service.composition.views import report_view
from trainmedic.service.dialogue.conversation import Message, message_of
from trainmedic.service.dialogue.difference import Difference, difference
from trainmedic.service.dialogue.intent import Intent, Relation, understand
from trainmedic.service.dialogue.query import Query, build_query
from trainmedic.service.dialogue.request import Ask, safely_named
from trainmedic.service.dialogue.turn import Turn, turn_of
from trainmedic.service.dialogue.two_runs import of_failing_run, two_runs
from trainmedic.service.dialogue.what_if import WhatIf, what_if, with_changes
from trainmedic.service.observers.tracing import tracer
from trainmedic.service.ranking.candidates import candidates_of, context_of, impossible_defects
from trainmedic.service.ranking.diagnose import Diagnosis, diagnose
from trainmedic.service.ranking.features import Candidate, Context, findings_of, said_concepts, shown_by_log
from trainmedic.service.ranking.knowledge import Knowledge
from trainmedic.service.ranking.reranked import Choice, reranked
from trainmedic.service.ranking.retrieve import Hit, retrieve
from trainmedic.service.ranking.similar import shown, similar_threads
from trainmedic.service.storage.memory import Asked, Memory

log = logging.getLogger("trainmedic.advisor")
CANDIDATES = 40
"""Causes that retrieval hands to ranking."""
COMPARED = (Relation.STILL_FAILING, Relation.CHANGED_EVIDENCE, Relation.PATCHED)
"""Messages whose answer begins with the difference to the previous one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedAnswer:
    """One question as far as it can be answered without a model: ``answer`` is complete by itself.

    ``supposed`` is what the rules say of a change that the question only supposes, ``changes`` the difference to the
    previous answer. ``printed`` are messages of frameworks in the evidence, ``similar`` reports of others,
    ``cases`` the published cases. ``working`` are the texts of the run that works, if the files are of two runs.
    ``index_id`` is the index that was searched.
    """

    request: Ask
    index_id: str
    message: Message
    context: Context
    diagnosis: Diagnosis
    answer: Answer
    supposed: WhatIf | None = None
    changes: Difference | None = None
    printed: tuple[MessageMatch, ...] = ()
    similar: tuple[SimilarThread, ...] = ()
    cases: Mapping[str, Case] = field(default_factory=dict)
    working: tuple[Source, ...] = ()

    @property
    def earlier(self) -> tuple[Turn, ...]:
        """The earlier turns of the conversation that were read."""
        return self.message.turns

    @property
    def asked(self) -> Asked:
        """What is stored of the question."""
        names = {attachment.name for attachment in self.request.attachments}
        sources = {source.name: source for source in (*self.working, *self.context.evidence.sources)}
        return Asked(
            evidence=self.context.evidence,
            sources=tuple(source for name, source in sources.items() if name in names),
            index_id=self.index_id,
            owner=self.request.owner,
            continues=any(turn.answer_id for turn in self.message.turns),
        )


class Advisor:
    """Answers questions from one body of knowledge. Holds no state but the memory; safe to share between threads.

    The knowledge may be renewed at any moment. Whoever makes several calls for one answer makes them on a `snapshot`.
    """

    def __init__(
        self,
        knowledge: Knowledge,
        read: Read,
        memory: Memory | None = None,
    ) -> None:
        """``read`` reads all that is sent: whoever composes the service says in which process.

        Conversations go on from ``memory``; without one, nothing is remembered.
        """
        self.knowledge = knowledge
        self.read = read
        self.memory = memory or Memory()
        self.embedded_percent = 0
        """How much of the knowledge is embedded while its index has words only."""

    def snapshot(self) -> Advisor:
        """This advisor with the knowledge of now, whatever `renew` does later."""
        return copy(self)

    def renew(self, knowledge: Knowledge) -> None:
        """Answer from other knowledge from now on; calls that have begun end with what they began with."""
        self.knowledge = knowledge

    def ask(self, request: Ask, trace_id: str = "") -> Answer:
        """Answer one question without a model. Raises `InvalidRequest` if the request is empty."""
        advisor = self.snapshot()
        prepared = advisor.prepare(request, trace_id)
        return advisor.memory.remember(prepared.asked, prepared.answer)

    def prepare(self, request: Ask, trace_id: str = "", restated: str = "") -> PreparedAnswer:
        """The answer without a model, with everything that it rests on; nothing is stored yet.

        ``restated`` is the question in other words, searched for beside the user's own. Raises `InvalidRequest` if the
        request is empty.
        """
        with tracer.start_as_current_span("diagnose", record_exception=False, set_status_on_exception=False) as span:
            prepared = self.snapshot()._prepare(request, trace_id, restated)
            answer = prepared.answer
            span.set_attribute("trainmedic.verdict", answer.verdict)
            span.set_attribute("trainmedic.causes", [cause.case_id for cause in answer.causes])
            for stage, milliseconds in answer.timings_ms.items():
                span.set_attribute(f"trainmedic.{stage}_ms", milliseconds)
        return prepared

    def _prepare(self, request: Ask, trace_id: str, restated: str) -> PreparedAnswer:
        watch = Stopwatch()
        request = request.validated()
        turns, recalled = self._earlier(request)
        runs = two_runs(request.question, request.attachments)
        attachments = runs.fails if runs is not None else request.attachments
        message = self._message(request.question, attachments, turns)
        if message.relation is Relation.STILL_FAILING and not turns[-1].verdict:
            turns = self._with_outcome(turns, request.top_k)
            message = self._message(request.question, attachments, turns)
        watch.lap("parse")
        candidates, context = self._look_up(message, watch, restated)
        changes = self._changes(message, context, turns)
        if changes is not None:
            ruled_out = {cause_id for case in changes.ruled_out for cause_id in self._same_fix(case)}
            candidates = tuple(candidate for candidate in candidates if candidate.cause.id not in ruled_out)
        diagnosis = diagnose(candidates, context, self.knowledge.weights, request.top_k)
        intent = context.intent
        supposed = None
        if intent.changes:
            supposed = what_if(context.evidence, intent.changes, self.knowledge.rules, self.read)
        language = intent.language if request.language == "auto" else request.language
        version = self.knowledge.cases.version
        printed = explain(context.evidence)
        answer = template_answer(message, context, diagnosis, supposed, language, version, changes=changes)
        answer = with_messages(answer, printed, self.knowledge.published)
        answer = replace(answer, defects=self._defects(context.evidence, answer))
        similar = () if answer.verdict == "no_fault" else shown(context.similar)
        answer = with_similar(answer, similar)
        working = self._side(runs.works) if runs is not None else None
        if working is not None:
            failing = self._side_of(context.evidence, context.report)
            compared = two_runs_view(working, failing, self.knowledge.mechanisms.mechanisms, language)
            answer = with_comparison(answer, compared)
        watch.lap("compose")
        answer = replace(
            answer,
            notices=(*answer.notices, *self._notices(language, recalled=recalled)),
            words_only=self.knowledge.index.words_only,
            id=uuid.uuid4().hex,
            conversation_id=request.conversation_id or uuid.uuid4().hex,
            trace_id=trace_id,
            timings_ms=watch.laps,
            sightings=self.memory.seen_before(context.evidence, answer, request.conversation_id or "", request.owner),
        )
        return PreparedAnswer(
            request=request,
            index_id=self.knowledge.index.manifest.id,
            message=message,
            context=context,
            diagnosis=diagnosis,
            answer=answer,
            supposed=supposed,
            changes=changes,
            printed=printed,
            similar=similar,
            cases=self.knowledge.published,
            working=working.evidence.sources if working is not None else (),
        )

    def reordered(self, prepared: PreparedAnswer, choices: Sequence[Choice]) -> PreparedAnswer:
        """The answer with a model's valid choices first (see `service.ranking.reranked`): as many causes as before, and
        the same verdict."""
        context, previous = prepared.context, prepared.answer
        texts = (context.evidence.question, *(source.text for source in context.evidence.sources))
        # The model has seen them without the names of people and machines.
        known = identities_of(texts)
        lines = [line for text in texts for seen in (text, mask_identities(text, known)) for line in seen.splitlines()]
        differential = reranked(prepared.diagnosis.differential, choices, lines)
        causes = differential.causes[: len(prepared.diagnosis.causes)]
        diagnosis = replace(prepared.diagnosis, differential=differential, causes=causes)
        answer = template_answer(
            prepared.message,
            context,
            diagnosis,
            prepared.supposed,
            previous.language,
            previous.kb_version,
            changes=prepared.changes,
        )
        answer = with_similar(with_messages(answer, prepared.printed, prepared.cases), prepared.similar)
        answer = with_comparison(answer, previous.comparison)
        answer = replace(
            answer,
            id=previous.id,
            conversation_id=previous.conversation_id,
            trace_id=previous.trace_id,
            timings_ms=previous.timings_ms,
            notices=previous.notices,
            words_only=previous.words_only,
            defects=previous.defects,
            sightings=previous.sightings,
        )
        return replace(prepared, diagnosis=diagnosis, answer=answer)

    def candidates(self, request: Ask) -> tuple[tuple[Candidate, ...], Context]:
        """What ranking works on for one question: the candidates and what they share."""
        request = request.validated()
        advisor = self.snapshot()
        attachments = of_failing_run(request.question, request.attachments)
        message = advisor._message(request.question, attachments, ())
        return advisor._look_up(message, Stopwatch())

    def check(self, attachments: Sequence[Attachment], language: str = "en") -> ReportView:
        """Rules only: no retrieval, no model, nothing stored."""
        evidence = self.read("", safely_named(attachments))
        return report_view(evidence, self._check(evidence), "zh" if language == "zh" else "en")

    def audit(
        self,
        attachments: Sequence[Attachment],
        language: str = "en",
        *,
        good: Sequence[Attachment] = (),
        question: str = "",
        with_possible: bool = False,
    ) -> AuditView:
        """The known defects of an environment; ``good`` lists the packages of one that works. Nothing is stored."""
        evidence = self.read(question, safely_named(attachments))
        versions = self.read("", safely_named(good)).versions if good else None
        defects = self.knowledge.defects.of(evidence.versions)
        return audited(evidence, defects, language, with_possible=with_possible, good=versions)[0]

    def diff(self, good: Sequence[Attachment], bad: Sequence[Attachment], language: str = "en") -> DiffView:
        """A failing run against one that works. Nothing is stored."""
        works, fails = (self._side(attachments) for attachments in (good, bad))
        return diff_view(works, fails, self.knowledge.mechanisms.mechanisms, language)

    def _side(self, attachments: Sequence[Attachment]) -> Side:
        evidence = self.read("", safely_named(attachments))
        return self._side_of(evidence, self._check(evidence))

    def _side_of(self, evidence: Evidence, report: Report) -> Side:
        return side_of(evidence, report, self.knowledge.defects.of(evidence.versions))

    def explain(self, text: str, attachments: Sequence[Attachment] = (), language: str = "en") -> MessagesView:
        """What the error messages in a text and in files say; nothing is stored."""
        return explained(self.read(text, safely_named(attachments)), "zh" if language == "zh" else "en")

    def search(self, text: str, top_k: int = 10, filters: Mapping[str, str] | None = None) -> tuple[Hit, ...]:
        """The cases nearest to a text, with scores and why; causes of another level if ``filters`` name one."""
        evidence = self.read(text, ())
        advisor = self.snapshot()
        query = build_query(evidence, Report(), evidence.question, glossary=advisor.knowledge.glossary)
        known = advisor.knowledge
        return retrieve(
            query,
            known.index,
            known.embedder,
            top_k=top_k,
            filters={"level": "case", **(filters or {})},
            cases=known.published,
            explain=True,
        )

    def nearest(self, text: str) -> str:
        """The id of the case nearest to a text; empty if none is near."""
        return next((hit.case_id for hit in self.search(text, 1)), "")

    def case(self, case_id: str) -> Case | None:
        """A published case, or None."""
        return self.knowledge.published.get(case_id)

    def _message(self, question: str, attachments: Sequence[Attachment], turns: Sequence[Turn]) -> Message:
        return message_of(question, attachments, turns, self.knowledge.glossary, self.read)

    def _look_up(self, message: Message, watch: Stopwatch, restated: str = "") -> tuple[tuple[Candidate, ...], Context]:
        glossary = self.knowledge.glossary
        evidence = self._as_it_is_now(message)
        intent = understand(
            message.question,
            evidence,
            glossary,
            language=message.language,
            relation=message.relation,
            changes=message.changes,
        )
        book = FactBook(evidence, said_concepts(intent))
        report = self._check(evidence, book)
        watch.lap("rules")
        text = f"{intent.text}\n{restated}" if restated else intent.text
        query = build_query(evidence, report, text, glossary=glossary)
        leave_out = impossible_defects(evidence, intent, self.knowledge)
        hits = self._hits(query, leave_out)
        watch.lap("retrieve")
        similar = self._similar(query, intent)
        context = context_of(evidence, report, intent, hits, self.knowledge, leave_out, similar, book)
        return candidates_of(hits, context, self.knowledge), context

    def _as_it_is_now(self, message: Message) -> Evidence:
        """The evidence with the changes that the user reports, among them the fixes of causes that were tried."""
        evidence, rules = message.evidence, self.knowledge.rules
        if message.made:
            evidence = with_changes(evidence, message.made, rules, self.read)
        if message.unstarted:
            evidence = unstarted(evidence)
        if message.tried:
            report = check(evidence, rules)
            findings = [
                finding
                for cause_id in message.tried
                if cause_id in self.knowledge.published
                for finding in findings_of(self.knowledge.published[cause_id], report)
                if finding in report.fired and not message.renewed(finding) and not shown_by_log(finding, evidence)
            ]
            edits = [edit for finding in findings for fix in finding.fixes[:1] for edit in fix.edits]
            if edits:
                evidence = reread(evidence, patched(edits, evidence.sources), self.read)
        return evidence

    def _changes(self, message: Message, context: Context, turns: Sequence[Turn]) -> Difference | None:
        """What this message changed against the answer before it; None if there is nothing to compare."""
        if not turns or message.only_talks or not (message.relation in COMPARED or message.made):
            return None
        last = turns[-1]
        earlier = self._message(last.question, last.attachments, turns[:-1])
        found = difference(check(self._as_it_is_now(earlier), self.knowledge.rules), context.report)
        cleared = {cause_id for finding in found.cleared for cause_id in finding.cases}
        fixed = last.causes[:1] if message.relation is Relation.PATCHED and set(last.causes[:1]) & cleared else ()
        causes = [
            self.knowledge.published[cause_id]
            for cause_id in (*message.tried, *fixed)
            if cause_id in self.knowledge.published
        ]
        kept = [case for case in causes if not any(message.renewed(f) for f in _fired(case, context.report))]
        return replace(found, ruled_out=tuple(kept), unstarted=message.unstarted)

    def _same_fix(self, case: Case) -> frozenset[str]:
        """The cause and the origins that stand for it alone."""
        origins = (
            origin_id(mechanism, origin)
            for mechanism in self.knowledge.mechanisms.mechanisms
            for origin in mechanism.origins
            if origin.cases == (case.id,)
        )
        return frozenset((case.id, *origins, *(case.related if case.level == "origin" else ())))

    def _with_outcome(self, turns: Sequence[Turn], top_k: int) -> tuple[Turn, ...]:
        """The turns, the last one with what it is answered; for callers that keep the conversation themselves."""
        *before, last = turns
        message = self._message(last.question, last.attachments, before)
        candidates, context = self._look_up(message, Stopwatch())
        diagnosis = diagnose(candidates, context, self.knowledge.weights, top_k)
        causes = tuple(cause.case.id for cause in diagnosis.causes)
        return (*before, replace(last, verdict=diagnosis.verdict, causes=causes))

    def _defects(self, evidence: Evidence, answer: Answer) -> tuple[DefectView, ...]:
        if answer.verdict == "no_fault":
            return ()
        mechanisms = {cause.mechanism.id for cause in answer.causes if cause.mechanism is not None}
        defects = self.knowledge.defects.of(evidence.versions)
        return defects_beside(evidence, defects.all, mechanisms, answer.language)

    def _similar(self, query: Query, intent: Intent) -> tuple[SimilarThread, ...]:
        """Reports of others like the question; none for a question of another field."""
        threads = self.knowledge.threads
        foreign = intent.out_of_scope or intent.domain_score < self.knowledge.weights.field
        if threads is None or foreign:
            return ()
        return similar_threads(query, threads, self.knowledge.embedder)

    def _notices(self, language: str, *, recalled: bool) -> tuple[str, ...]:
        building = self.knowledge.index.words_only
        return (
            *((messages("words_only", language, percent=self.embedded_percent),) if building else ()),
            *((messages("not_stored", language),) if not recalled else ()),
        )

    def _check(self, evidence: Evidence, book: FactBook | None = None) -> Report:
        rules = self.knowledge.rules  # read once: `check` calls this on an advisor that may be renewed
        return with_patches(check(evidence, rules, book), evidence, rules, self.read)

    def _hits(self, query: Query, leave_out: Collection[str]) -> tuple[Hit, ...]:
        known = self.knowledge
        return retrieve(
            query, known.index, known.embedder, top_k=CANDIDATES, cases=known.published, leave_out=leave_out
        )

    def _earlier(self, request: Ask) -> tuple[tuple[Turn, ...], bool]:
        """The earlier turns, and whether all that are stored could be read."""
        unstored = tuple(turn_of(mask(text).text) for text in request.earlier)
        if request.conversation_id is None:
            return unstored, True
        try:
            turns = self.memory.turns(request.conversation_id, request.owner)
        except StoreError:
            return unstored, False
        failing = (replace(turn, attachments=of_failing_run(turn.question, turn.attachments)) for turn in turns)
        return (*failing, *unstored), True


def _fired(case: Case, report: Report) -> tuple[Finding, ...]:
    return tuple(finding for finding in findings_of(case, report) if finding.status is Status.FIRED)
